#!/bin/bash
# Many hosts with real sshd for `npm run bench:look`: network namespaces of one machine, one sshd in each, all but
# the first reached through the first. They share the machine's files and users; what is measured is the looking.
#
# usage (root): look-hosts.sh up DIR PREFIX COUNT | down DIR PREFIX
set -euo pipefail

up() {
  local dir=$1 prefix=$2 count=$3 n
  mkdir -p "$dir" /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$dir/id_ed25519"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
  cp "$dir/id_ed25519.pub" "$dir/authorized_keys"
  ip netns add "$prefix-ctl"
  ip netns add "$prefix-sw"
  ip -n "$prefix-ctl" link set lo up
  ip -n "$prefix-sw" link add br0 type bridge
  ip -n "$prefix-sw" link set br0 up
  for n in $(seq "$count"); do
    ip netns add "$prefix-$n"
    ip -n "$prefix-$n" link set lo up
    ip link add eth0 netns "$prefix-$n" type veth peer name "p$n" netns "$prefix-sw"
    ip -n "$prefix-sw" link set "p$n" master br0 up
    ip -n "$prefix-$n" addr add "192.168.200.$((10 + n))/24" dev eth0
    ip -n "$prefix-$n" link set eth0 up
  done
  ip link add mgmt netns "$prefix-ctl" type veth peer name mgmt netns "$prefix-1"
  ip -n "$prefix-ctl" addr add 10.1.230.1/24 dev mgmt
  ip -n "$prefix-1" addr add 10.1.230.180/24 dev mgmt
  ip -n "$prefix-ctl" link set mgmt up
  ip -n "$prefix-1" link set mgmt up
  for n in $(seq "$count"); do
    cat >"$dir/sshd-$n.conf" <<CONF
HostKey $dir/host_key
PidFile $dir/sshd-$n.pid
AuthorizedKeysFile $dir/authorized_keys
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
LogLevel VERBOSE
CONF
    nsenter --net="/run/netns/$prefix-$n" /usr/sbin/sshd -f "$dir/sshd-$n.conf" -E "$dir/sshd-$n.log"
  done
}

down() {
  local dir=$1 prefix=$2 pid name
  for pid in "$dir"/sshd-*.pid; do
    [ -s "$pid" ] && kill "$(cat "$pid")" 2>/dev/null || true
  done
  for name in $(ip netns list | awk -v p="$prefix-" 'index($1, p) == 1 {print $1}'); do ip netns del "$name"; done
}

"$@"
