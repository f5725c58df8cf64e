#!/bin/bash
# Two hosts on this machine with real OpenSSH servers, in network, mount, PID and host name namespaces.
#
#   ctl 10.1.230.1 ── 10.1.230.180 spark-a 192.168.200.12 ── 192.168.200.13 spark-b
#
# The controller has no route to spark-b: it is reached through spark-a only. Nothing is configured in the
# machine's own network namespace. sudo asks for a password on spark-b, and for none on spark-a.
#
# usage (root): hosts.sh up DIR PREFIX DIST NODE | down DIR PREFIX | enter DIR HOST USER COMMAND...
set -euo pipefail

up() {
  local dir=$1 prefix=$2 dist=$3 node=$4 host
  mkdir -p "$dir/ctl"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/ctl/id_ed25519"
  for host in ctl a b; do
    ip netns add "$prefix-$host"
    ip -n "$prefix-$host" link set lo up
  done
  link "$prefix-ctl" mgmt 10.1.230.1/24 "$prefix-a" enP7s7 10.1.230.180/24
  # The cable sits in another cage at the other end, so the interface names differ, as they do on Sparks.
  link "$prefix-a" enp1s0f0np0 192.168.200.12/24 "$prefix-b" enp1s0f1np1 192.168.200.13/24
  start "$dir" "$prefix" a 192.168.200.12 "$dist" "$node"
  start "$dir" "$prefix" b 192.168.200.13 "$dist" "$node"
  local tries
  for host in a b; do
    for tries in $(seq 600); do
      [ -s "$dir/$host/ready" ] && break
      sleep 0.1
    done
    [ -s "$dir/$host/ready" ] || { echo "spark-$host did not come up:" >&2; cat "$dir/$host/log" >&2; exit 1; }
  done
}

link() { # NETNS NAME ADDRESS NETNS NAME ADDRESS
  ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
  ip -n "$1" addr add "$3" dev "$2"
  ip -n "$4" addr add "$6" dev "$5"
  ip -n "$1" link set "$2" up
  ip -n "$4" link set "$5" up
}

start() {
  local dir=$1 prefix=$2 host=$3 fabric=$4 dist=$5 node=$6
  mkdir -p "$dir/$host"
  setsid nsenter --net="/run/netns/$prefix-$host" unshare --mount --uts --pid --fork --kill-child \
    "$BASH" "$0" init "$dir" "$host" "$fabric" "$dist" "$node" >"$dir/$host/log" 2>&1 </dev/null &
  echo $! >"$dir/$host/outer-pid"
}

# Runs as PID 1 of the host.
init() {
  local dir=$1 host=$2 fabric=$3 dist=$4 node=$5 own=$1/$2 name=spark-$2
  exec 3>"$own/ready" # opened before /tmp, which may hold it, is covered
  mount --make-rprivate /
  mkdir -p "$own/root"
  mount -t tmpfs -o mode=755 tmpfs "$own/root"
  mkdir -p "$own/root/etc" "$own/root/work"
  mount -t overlay overlay -o "lowerdir=/etc,upperdir=$own/root/etc,workdir=$own/root/work" /etc
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  hostname "$name"
  echo "$name" >/etc/hostname
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$name" >/etc/hosts
  printf 'e2e%s%s\n' "$host" "$(head -c 14 /dev/urandom | od -An -tx1 | tr -d ' \n')" >/etc/machine-id
  # A Python that lies in root's own home is shown to all, and nothing else of it.
  local shown=${FIRSTLIGHT_E2E_SHOW:-}
  if [ -n "$shown" ]; then
    mkdir -p "$own/shown"
    mount --bind "$shown" "$own/shown"
    mount -t tmpfs -o mode=755 tmpfs /root
    mkdir -p "$shown"
    mount --bind "$own/shown" "$shown"
  fi
  mount -t tmpfs -o mode=755 tmpfs /srv
  mkdir -p /srv/dist /srv/bin /srv/model /srv/home
  mount --bind "$dist" /srv/dist
  cp "$node" /srv/bin/node
  ln -s node /srv/bin/reranker
  cp "$dir/nvidia-smi" /srv/bin/nvidia-smi
  cp "$dir/package.json" /srv/package.json
  cp -r --sparse=always "$dir/model/." /srv/model/
  echo 'PATH=/srv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' >/etc/environment
  local user
  for user in aurora lab; do
    id "$user" >/dev/null 2>&1 || useradd -m -d "/srv/home/$user" -s /bin/bash "$user"
    echo "$user:aurora-pw" | chpasswd
  done
  local how='ALL'
  [ "$host" = a ] && how='NOPASSWD: ALL'
  echo "aurora ALL=(ALL:ALL) $how" >/etc/sudoers.d/aurora
  chmod 440 /etc/sudoers.d/aurora
  install -d -m 700 -o aurora -g aurora /srv/home/aurora/.ssh
  install -m 600 -o aurora -g aurora "$dir/ctl/id_ed25519.pub" /srv/home/aurora/.ssh/authorized_keys
  mount -t tmpfs -o mode=755 tmpfs /run
  # Shared memory tells engines who sits on the same host.
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  mkdir -p /run/sshd
  mount -t tmpfs -o mode=1777 tmpfs /tmp
  rm -f /etc/ssh/ssh_host_*
  ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
  cat >/etc/ssh/sshd_config <<'CONF'
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
SetEnv PATH=/srv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Subsystem sftp internal-sftp
CONF
  # Where there are real GPUs, each host has one of its own: "0 1" in FIRSTLIGHT_E2E_GPUS.
  if [ -n "${FIRSTLIGHT_E2E_GPUS:-}" ]; then
    local gpu=${FIRSTLIGHT_E2E_GPUS%% *}
    [ "$host" = a ] || gpu=${FIRSTLIGHT_E2E_GPUS##* }
    sed -i "s|^SetEnv |SetEnv CUDA_VISIBLE_DEVICES=$gpu |" /etc/ssh/sshd_config
    printf '#!/bin/sh\nexec %s -i %s "$@"\n' "$(command -v nvidia-smi)" "$gpu" >/srv/bin/nvidia-smi
    mount -t tmpfs tmpfs /proc/driver/nvidia/gpus && mkdir "/proc/driver/nvidia/gpus/$gpu"
  fi
  # A banner from the login shell: output must be told apart from it.
  sed -i '1i echo "Welcome to this host, have a nice day"' /srv/home/aurora/.bashrc
  /usr/sbin/sshd -E /srv/sshd.log
  local tries
  for tries in $(seq 300); do
    [ -s /run/sshd.pid ] && break
    sleep 0.1
  done
  [ -s /run/sshd.pid ]
  cat /run/sshd.pid >&3
  # PID 1 reaps whatever is orphaned, until it is ended from outside.
  while :; do
    sleep 3600 &
    wait $! || true
  done
}

down() {
  local dir=$1 prefix=$2 host
  for host in a b; do
    [ -s "$dir/$host/outer-pid" ] && kill -9 -- "-$(cat "$dir/$host/outer-pid")" 2>/dev/null || true
  done
  for host in ctl a b; do ip netns del "$prefix-$host" 2>/dev/null || true; done
}

# A command inside a host, past sshd. Prints nothing of its own.
enter() {
  local dir=$1 host=$2 user=$3 inner
  shift 3
  inner=$(pgrep -P "$(cat "$dir/$host/outer-pid")" -o)
  exec nsenter -t "$inner" --mount --uts --pid --net -- runuser -u "$user" -- "$@"
}

"$@"
