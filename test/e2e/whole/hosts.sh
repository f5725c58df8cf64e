#!/bin/bash
# Whole hosts on this machine: systemd-nspawn containers with systemd as PID 1, journald, logind, sshd and sudo.
#
#   ctl ── mgmt bridge ── a (head)        10.77.230.180 …: the controller reaches a alone, since its port and those
#                         b … h           of all others are isolated from each other; a reaches everybody
#         fabric bridge ─ a … h           192.168.77.12 …, MTU 9000
#
# a and b have a dockerd, c has podman. Nothing is configured in the machine's own network namespace.
#
# usage (root): hosts.sh rootfs | up DIR PREFIX DIST NODE COUNT | down DIR PREFIX | enter DIR HOST USER COMMAND...
#               | pid1 DIR HOST | power DIR HOST on|off|cut|reboot | freeze|thaw DIR HOST | port DIR HOST mgmt|fab up|down
#               | pipe DIR HOST COMMAND HOST COMMAND | limit DIR HOST BYTES | watch PID DIR PREFIX
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
CACHE=/var/cache/firstlight-e2e
CG=/sys/fs/cgroup
PACKAGES=systemd-sysv,dbus,libpam-systemd,openssh-server,sudo,iproute2,procps,libstdc++6,iptables,busybox-static
PACKAGES+=,docker.io,docker-compose,podman,runc,uidmap,dbus-user-session

rootfs() {
  local key root src made
  key=$(sed -n '/^PACKAGES/p; /^rootfs() {/,/^}/p' "$HERE/hosts.sh" | md5sum | cut -c1-12)
  root=$CACHE/root-$key
  [ -e "$root/.whole" ] && { echo "$root"; return; }
  mkdir -p "$CACHE"
  exec 9>"$CACHE/lock"
  flock 9
  [ -e "$root/.whole" ] && { echo "$root"; return; }
  rm -rf "$CACHE"/root-*
  src=/etc/apt/sources.list
  [ -s $src ] || src=$(ls /etc/apt/sources.list.d/debian.sources)
  made=$(mktemp -d "$CACHE/root-making-XXXXXX")
  mmdebstrap --mode=root --variant=minbase --quiet --include="$PACKAGES" \
    --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --aptopt='Acquire::Languages "none"' \
    --aptopt='APT::Install-Recommends "false"' bookworm "$made" "$src" >"$CACHE/rootfs.log" 2>&1 9>&- ||
    { tail -n 5 "$CACHE/rootfs.log" >&2; rm -rf "$made"; exit 1; }
  chroot "$made" groupadd -f docker
  chroot "$made" useradd -m -s /bin/bash -u 1000 -G sudo,docker,systemd-journal aurora
  chroot "$made" useradd -m -s /bin/bash -u 1001 lab
  printf 'aurora:aurora-pw\nlab:lab-pw\n' | chroot "$made" chpasswd
  rm -f "$made"/etc/ssh/ssh_host_* "$made/etc/machine-id" "$made/etc/hostname"
  # A test host fetches and rotates nothing, and has no kernel, terminal or clock of its own.
  chmod 755 "$made"
  local unit
  for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    e2scrub_reap.service systemd-timesyncd.service getty.target console-getty.service systemd-udevd.service \
    systemd-udev-trigger.service systemd-modules-load.service modprobe@.service kmod-static-nodes.service \
    systemd-sysctl.service systemd-pstore.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
    sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount systemd-binfmt.service \
    proc-sys-fs-binfmt_misc.automount podman-auto-update.timer podman-auto-update.service \
    podman.socket podman.service podman-restart.service; do
    ln -sf /dev/null "$made/etc/systemd/system/$unit"
  done
  ln -sf /lib/systemd/system/multi-user.target "$made/etc/systemd/system/default.target"
  # The image of containers: a shell and what node is linked with; node itself is mounted.
  local image=$made/srv/image lib
  mkdir -p "$image"/{bin,tmp,etc,proc,sys,dev,lib64}
  cp "$made/bin/busybox" "$image/bin/"
  for lib in sh env cat ls sleep mkdir mktemp mkfifo rm sed; do ln -s busybox "$image/bin/$lib"; done
  for lib in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 libstdc++.so.6 libgcc_s.so.1 librt.so.1; do
    cp -L "$(ls "$made"/usr/lib/*-linux-gnu/$lib "$made"/lib/*-linux-gnu/$lib 2>/dev/null | head -n 1)" "$image/lib64/"
  done
  # The loader of aarch64 stands in /lib, that of x86_64 in /lib64.
  cp -L "$made"/lib*/ld-linux-*.so.* "$image/lib64/"
  ln -s lib64 "$image/lib"
  echo 'root:x:0:0::/:/bin/sh' >"$image/etc/passwd"
  for lib in sglang vllm; do
    printf '#!/bin/sh\nexec /srv/bin/node /srv/dist/lab/engine/main.js %s "$@"\n' $lib >"$image/bin/$lib"
    chmod 755 "$image/bin/$lib"
  done
  tar -C "$image" -cf "$made/srv/image.tar" .
  rm -rf "$image" "$made"/var/lib/apt/lists/* "$made"/var/cache/apt/*.bin
  touch "$made/.whole"
  mv "$made" "$root"
  echo "$root"
}

letters() { echo a b c d e f g h | cut -d' ' -f"1-$1"; }
number() { printf '%d' "$(($(printf '%d' "'$1") - 97))"; }
mgmt() { echo "10.77.230.$((180 + $(number "$1")))"; }
fabric() { echo "192.168.77.$((12 + $(number "$1")))"; }
prefix() { cat "$1/prefix"; }

# The host's cgroups: one in each v1 hierarchy, or one where there is v2 alone.
cgroups() {
  local c p; p=$(prefix "$1")
  if [ -e $CG/cgroup.controllers ]; then echo "$CG/$p/$2"; return; fi
  for c in systemd unified memory pids cpu cpuacct cpuset devices freezer blkio; do
    [ -d $CG/$c ] && echo "$CG/$c/$p/$2"
  done
}

up() {
  local dir=$1 p=$2 dist=$3 node=$4 count=$5 h root
  root=$(rootfs)
  mkdir -p "$dir/ctl" "$dir/hosts" "$dir/lxcfs" "$dir/srv/dist" "$dir/srv/bin"
  touch "$dir/srv/bin/node"
  cp "$root/srv/image.tar" "$dir/srv/image.tar"
  echo "$p" >"$dir/prefix"
  printf '%s\n' "$root" "$dist" "$node" >"$dir/parts"
  [ "$(cat /proc/sys/fs/inotify/max_user_instances)" -ge 1024 ] || echo 1024 >/proc/sys/fs/inotify/max_user_instances
  setsid lxcfs -l -p "$dir/lxcfs.pid" "$dir/lxcfs" </dev/null >"$dir/lxcfs.log" 2>&1 &
  network "$dir" "$p" "$count"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/ctl/id_ed25519"
  for h in $(letters "$count"); do files "$dir" "$h"; done
  for _ in $(seq 600); do [ -e "$dir/lxcfs/proc/meminfo" ] && break; sleep 0.05; done
  [ -e "$dir/lxcfs/proc/meminfo" ] || { echo "lxcfs tells of no memory:" >&2; cat "$dir/lxcfs.log" >&2; exit 1; }
  for h in $(letters "$count"); do start "$dir" "$h"; done
  for h in $(letters "$count"); do
    ready "$dir" "$h" 120 || { echo "spark-$h did not come up:" >&2; tail -n 20 "$dir/hosts/$h/console" >&2; exit 1; }
  done
}

network() {
  local dir=$1 p=$2 count=$3 h
  for h in sw ctl $(letters "$count"); do ip netns add "$p-$h"; ip -n "$p-$h" link set lo up; done
  ip -n "$p-sw" link add mgmt type bridge
  ip -n "$p-sw" link add fab mtu 9000 type bridge
  ip -n "$p-sw" link set mgmt up
  ip -n "$p-sw" link set fab up
  cable "$p" ctl eth0 m-ctl mgmt 10.77.230.1 1500
  nsenter --net="/run/netns/$p-sw" bridge link set dev m-ctl isolated on
  for h in $(letters "$count"); do
    cable "$p" "$h" enP7s7 "m-$h" mgmt "$(mgmt "$h")" 1500
    cable "$p" "$h" enp1s0f0np0 "f-$h" fab "$(fabric "$h")" 9000
    [ "$h" = a ] || nsenter --net="/run/netns/$p-sw" bridge link set dev "m-$h" isolated on
  done
}

cable() { # PREFIX HOST NAME PORT BRIDGE ADDRESS MTU
  ip link add "$3" mtu "$7" netns "$1-$2" type veth peer name "$4" mtu "$7" netns "$1-sw"
  ip -n "$1-$2" addr add "$6/24" dev "$3"
  ip -n "$1-$2" link set "$3" up
  ip -n "$1-sw" link set "$4" master "$5" up
}

files() {
  local dir=$1 h=$2 root up=$1/hosts/$2/upper at bin
  root=$(head -n 1 "$dir/parts")
  mkdir -p "$up" "$dir/hosts/$h"/{work,root,docker,containerd,containers,home}
  mkdir -p "$up"/{etc/ssh,etc/sudoers.d,etc/containers,usr/bin,srv,var/log/journal}
  chmod 750 "$up/etc/sudoers.d"
  echo "spark-$h" >"$up/etc/hostname"
  md5sum <<<"$RANDOM $h $$ $(date +%N)" | cut -c1-32 >"$up/etc/machine-id"
  printf '127.0.0.1 localhost\n127.0.1.1 spark-%s\n' "$h" >"$up/etc/hosts"
  ssh-keygen -q -t ed25519 -N '' -C "spark-$h" -f "$up/etc/ssh/ssh_host_ed25519_key"
  echo 'PATH=/srv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' >"$up/etc/environment"
  # sudo asks for a password on b alone.
  echo "aurora ALL=(ALL:ALL) $([ "$h" = b ] || echo NOPASSWD:) ALL" >"$up/etc/sudoers.d/aurora"
  chmod 440 "$up/etc/sudoers.d/aurora"
  # b's home is a small disk of its own, which can be filled.
  if [ "$h" = b ]; then
    truncate -s 48M "$dir/hosts/$h/home.img"
    mkfs.ext4 -q -F -m 0 "$dir/hosts/$h/home.img"
    mount -o loop "$dir/hosts/$h/home.img" "$dir/hosts/$h/home"
  fi
  # The homes lie on a file system without a layer: rootless podman keeps its own layers there.
  cp -a "$root/home/." "$dir/hosts/$h/home/"
  install -d -m 700 -o 1000 -g 1000 "$dir/hosts/$h/home/aurora/.ssh"
  install -m 600 -o 1000 -g 1000 "$dir/ctl/id_ed25519.pub" "$dir/hosts/$h/home/aurora/.ssh/authorized_keys"
  # A banner from the login shell: output must be told apart from it.
  sed -i '1i echo "Welcome to this host, have a nice day"' "$dir/hosts/$h/home/aurora/.bashrc"
  printf '[engine]\nruntime = "runc"\n[engine.runtimes]\nrunc = ["/usr/local/sbin/runc"]\n' >"$up/etc/containers/containers.conf"
  # What a host lacks is hidden from it: a whiteout of overlayfs is a device 0/0.
  local absent=
  case $h in
    a | b) absent=podman ;;
    c) absent='docker dockerd docker-compose containerd' ;;
    *) absent='docker dockerd docker-compose containerd podman' ;;
  esac
  for bin in $absent; do mknod "$up/usr/bin/$bin" c 0 0 2>/dev/null || true; done
  [ -e "$root/usr/sbin/dockerd" ] && case $h in a | b) ;; *) mkdir -p "$up/usr/sbin"; mknod "$up/usr/sbin/dockerd" c 0 0 ;; esac
  case $h in
    a | b) ;;
    *)
      mkdir -p "$up/etc/systemd/system"
      for at in docker.service docker.socket containerd.service; do ln -sf /dev/null "$up/etc/systemd/system/$at"; done
      ;;
  esac
}

start() {
  local dir=$1 h=$2 c root
  root=$(head -n 1 "$dir/parts")
  mountpoint -q "$dir/hosts/$h/root" ||
    mount -t overlay "$(prefix "$dir")-$h" -o "lowerdir=$root,upperdir=$dir/hosts/$h/upper,workdir=$dir/hosts/$h/work" "$dir/hosts/$h/root"
  for c in $(cgroups "$dir" "$h"); do
    mkdir -p "$c"
    case $c in
      $CG/cpuset/*)
        for c in "${c%/*}" "$c"; do
          cat $CG/cpuset/cpuset.cpus >"$c/cpuset.cpus"
          cat $CG/cpuset/cpuset.mems >"$c/cpuset.mems"
        done
        ;;
    esac
  done
  [ ! -s "$dir/hosts/$h/limit" ] || set_limit "$dir" "$h"
  setsid "$BASH" "$0" run "$dir" "$h" </dev/null >>"$dir/hosts/$h/console" 2>&1 9>&- &
  echo $! >"$dir/hosts/$h/pid"
}

# The host's power supply: runs it, and again after each reboot (nspawn with --keep-unit ends with 133 then).
run() {
  local dir=$1 h=$2 p code root dist node own=$1/hosts/$2 c
  p=$(prefix "$dir")
  { read -r root; read -r dist; read -r node; } <"$dir/parts"
  for c in $(cgroups "$dir" "$h"); do echo $$ >"$c/cgroup.procs"; done
  while :; do
    code=0
    SYSTEMD_NSPAWN_API_VFS_WRITABLE=network SYSTEMD_NSPAWN_LOCK=0 systemd-nspawn -q --register=no --keep-unit \
      --directory="$own/root" --machine="$p-$h" --hostname="spark-$h" --network-namespace-path="/run/netns/$p-$h" \
      --capability=CAP_NET_ADMIN,CAP_IPC_LOCK --system-call-filter='add_key keyctl bpf' --kill-signal=SIGRTMIN+3 \
      --link-journal=no --resolv-conf=off --timezone=off --console=pipe --bind=/dev/fuse \
      --bind="$dir/lxcfs:/var/lib/lxcfs" --bind="$own/home:/home" --bind="$own/docker:/var/lib/docker" \
      --bind="$own/containerd:/var/lib/containerd" --bind="$own/containers:/var/lib/containers" \
      --bind-ro="$HERE/init:/usr/local/sbin/whole-init" --bind-ro="$HERE/runc.mjs:/usr/local/sbin/runc" \
      --bind-ro="$dir/srv:/srv" --bind-ro="$dist:/srv/dist" --bind-ro="$node:/srv/bin/node" \
      --bind-ro=/bin/true:/usr/bin/nvidia-container-runtime-hook \
      /usr/local/sbin/whole-init || code=$?
    echo "ended with $code"
    [ "$code" = 133 ] || break
    ports "$dir" "$h" down
    sleep 1
    ports "$dir" "$h" up
  done
  ports "$dir" "$h" down
  rm -f "$own/pid"
}

ports() { # DIR HOST up|down; the network may be gone already
  ip -n "$(prefix "$1")-sw" link set "m-$2" "$3" 2>/dev/null || true
  ip -n "$(prefix "$1")-sw" link set "f-$2" "$3" 2>/dev/null || true
}

ready() { # DIR HOST SECONDS: what was told to end has ended, sshd answers, and dockerd where there is one
  local until=$((SECONDS + $3)) left
  left=$(cat "$1/hosts/$2/left" 2>/dev/null) || left=
  while [ $SECONDS -lt $until ]; do
    # As long as it goes down, its sshd may answer still.
    [ -z "$left" ] || ! kill -0 "$left" 2>/dev/null || { sleep 0.1; continue; }
    if nsenter --net="/run/netns/$(prefix "$1")-$2" "$BASH" -c 'exec 3<>/dev/tcp/127.0.0.1/22 && read -t 2 -r line <&3 && [[ $line == SSH-* ]]' 2>/dev/null; then
      case $2 in a | b) [ -S "/proc/$(pid1 "$1" "$2")/root/run/docker.sock" ] && [ -e "/proc/$(pid1 "$1" "$2")/root/run/docker.pid" ] && return 0 ;; *) return 0 ;; esac
    fi
    sleep 0.1
  done
  return 1
}

pid1() {
  local c pid
  for c in $(cgroups "$1" "$2"); do
    for pid in $(cat "$c"/payload/{init.scope/,}cgroup.procs "$c/init.scope/cgroup.procs" 2>/dev/null); do
      [ "$(awk '/^NSpid:/ {print NF, $NF}' "/proc/$pid/status" 2>/dev/null)" = "3 1" ] && { echo "$pid"; return; }
    done
  done
  return 1
}

# A command inside a host as a user, past sshd, with no more rights than the host's own root has.
enter() {
  local dir=$1 h=$2 user=$3 pid bound c out='' b
  shift 3
  pid=$(pid1 "$dir" "$h") || { echo "spark-$h is not running" >&2; exit 1; }
  bound=$((0x$(awk '/^CapBnd/ {print $2}' "/proc/$pid/status")))
  for b in $(seq 0 40); do ((bound >> b & 1)) || out+=",-cap_$b"; done
  for c in $(cgroups "$dir" "$h"); do echo $$ >"$c/cgroup.procs"; done
  exec nsenter -t "$pid" -a setpriv --bounding-set "${out#,}" env -i HOME=/root LANG=C.UTF-8 \
    PATH=/srv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin runuser -u "$user" -- "$@"
}

# What one host's command writes is what another's reads.
pipe() { # DIR HOST COMMAND HOST COMMAND
  "$BASH" "$0" enter "$1" "$2" root sh -c "$3" | "$BASH" "$0" enter "$1" "$4" root sh -c "$5"
}

power() {
  local dir=$1 h=$2 pid
  case $3 in
    on) ports "$dir" "$h" up; start "$dir" "$h"; ready "$dir" "$h" 120 ;;
    off) kill -s RTMIN+4 "$(pid1 "$dir" "$h")"; gone "$dir" "$h" ;;
    reboot)
      pid=$(pid1 "$dir" "$h")
      echo "$pid" >"$dir/hosts/$h/left"
      kill -s RTMIN+5 "$pid"
      ;;
    cut)
      ports "$dir" "$h" down
      [ ! -s "$dir/hosts/$h/pid" ] || kill -9 "$(cat "$dir/hosts/$h/pid")" 2>/dev/null || true
      end "$dir" "$h"
      # What is being ended holds its files for a moment still.
      for _ in $(seq 100); do [ -n "$(alive "$dir" "$h")" ] || break; sleep 0.1; done
      rm -f "$dir/hosts/$h/pid"
      ;;
  esac
}

end() { # every process of the host at once
  local c
  thaw "$1" "$2"
  for c in $(cgroups "$1" "$2"); do [ ! -e "$c/cgroup.kill" ] || echo 1 >"$c/cgroup.kill"; done
}

alive() { local c; for c in $(cgroups "$1" "$2"); do find "$c" -name cgroup.procs -exec cat {} + 2>/dev/null || true; done; }

gone() {
  for _ in $(seq 100); do [ -s "$1/hosts/$2/pid" ] || return 0; sleep 0.1; done
  return 1
}

freeze() { frozen "$1" "$2" FROZEN 1; }
thaw() { frozen "$1" "$2" THAWED 0; }
frozen() {
  local c
  for c in $(cgroups "$1" "$2"); do
    case $c in
      $CG/freezer/*) [ ! -e "$c/freezer.state" ] || echo "$3" >"$c/freezer.state" ;;
      $CG/"$(prefix "$1")"/*) [ ! -e "$c/cgroup.freeze" ] || echo "$4" >"$c/cgroup.freeze" ;;
    esac
  done
}

port() { ip -n "$(prefix "$1")-sw" link set "$([ "$3" = mgmt ] && echo "m-$2" || echo "f-$2")" "$4"; }

# Memory of the host: what it may use, and what its /proc/meminfo tells.
limit() { echo "$3" >"$1/hosts/$2/limit"; set_limit "$1" "$2"; }
set_limit() {
  local c
  for c in $(cgroups "$1" "$2"); do
    case $c in
      $CG/memory/*) cat "$1/hosts/$2/limit" >"$c/memory.limit_in_bytes" ;;
      $CG/"$(prefix "$1")"/*) cat "$1/hosts/$2/limit" >"$c/memory.max" ;;
    esac
  done
}

down() {
  local dir=$1 p=$2 h c at
  [ -e "$dir/prefix" ] || return 0
  for h in $(ls "$dir/hosts" 2>/dev/null); do
    [ ! -s "$dir/hosts/$h/pid" ] || kill -9 "$(cat "$dir/hosts/$h/pid")" 2>/dev/null || true
    end "$dir" "$h"
  done
  for h in $(ls "$dir/hosts" 2>/dev/null); do
    for _ in $(seq 50); do
      [ -n "$(alive "$dir" "$h")" ] || break
      sleep 0.1
    done
    for _ in $(seq 20); do
      at=
      for c in $(cgroups "$dir" "$h"); do
        [ ! -d "$c" ] || { find "$c" -depth -type d -exec rmdir {} + 2>/dev/null || true; }
        [ ! -d "$c" ] || at=$c
      done
      [ -n "$at" ] || break
      sleep 0.1
    done
    while mountpoint -q "$dir/hosts/$h/root"; do umount -l "$dir/hosts/$h/root"; done
    while mountpoint -q "$dir/hosts/$h/home"; do umount -l "$dir/hosts/$h/home"; done
    rm -rf "/run/systemd/nspawn/propagate/$p-$h"
  done
  for c in $CG/*/"$p" $CG/"$p"; do [ ! -d "$c" ] || rmdir "$c" 2>/dev/null || true; done
  [ ! -s "$dir/lxcfs.pid" ] || kill "$(cat "$dir/lxcfs.pid")" 2>/dev/null || true
  ! mountpoint -q "$dir/lxcfs" || umount -l "$dir/lxcfs" || true
  for h in sw ctl a b c d e f g h; do ip netns del "$p-$h" 2>/dev/null || true; done
  rm -rf "$dir"
}

# Cleans up when the process that wanted the hosts is gone, however it ended.
watch() {
  local pid=$1
  while kill -0 "$pid" 2>/dev/null; do sleep 1; done
  down "$2" "$3"
}

"$@"
