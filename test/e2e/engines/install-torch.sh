#!/bin/sh
# Prints a Python that has torch with Gloo: of the virtual environment $1 where it is whole, else the system's own, for
# which Debian's python3-torch is installed once (what pip takes for Linux is made for GPUs: gigabytes). What an
# installation cost goes to standard error.
set -eu
if [ -x "$1/bin/python" ] && ls "$1"/whole-* >/dev/null 2>&1; then echo "$1/bin/python"; exit 0; fi
has() { "$1" -c 'import torch.distributed as dist; assert dist.is_gloo_available()' 2>/dev/null || "$1" -c 'from torch.distributed import ProcessGroupGloo' 2>/dev/null; }
if ! has /usr/bin/python3; then
  began=$(date +%s)
  used() { df -m --output=used / | tail -n 1; }
  before=$(used)
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # Nothing of it must outlive a power cut: no waiting for the disk at each of 165 packages.
  apt-get install -y -qq --no-install-recommends -o DPkg::Options::=--force-unsafe-io python3-torch >&2
  has /usr/bin/python3
  echo "torch $(/usr/bin/python3 -c 'import torch; print(torch.__version__)') installed in $(($(date +%s) - began)) s, $(($(used) - before)) MB" >&2
fi
echo /usr/bin/python3
