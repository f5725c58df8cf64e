/** Seconds that a node waits for the head, and the head for the nodes. */
const RAY_JOIN_SECONDS = 180;
/** Seconds that Ray gets to end its own processes. */
export const RAY_STOP_SECONDS = 15;

/**
 * One node of vLLM over Ray as one process: Ray first, on the head then the driver as soon as all nodes have joined,
 * and both down again when the driver ends or TERM comes. There is no single quote in it, so that it stays readable
 * in the rank's command.sh.
 *
 * Arguments: the node's environment (a venv) or nothing, the head's address, its port, the node's own address, nodes,
 * GPUs on this node; on the head then the driver's command.
 *
 * `ray start --block` runs only the node's own Ray and takes it along when it is ended; `ray stop` would look for
 * Ray's processes by name and end every other Ray of this user on the host too (Ray 2.60, scripts.py). A worker dials
 * the head's port itself: `ray start` and `ray health-check` give up after 35 s with a page of traceback.
 *
 * vLLM copies NCCL_* of the driver's environment to all nodes (ray_env.py; engines.md 2.2), so the driver must not
 * have what is this node's own. Its rank 0 has it all the same: it is Ray's child, not the driver's.
 */
export const RAY_NODE_SH = String.raw`venv=$1 head=$2 port=$3 own=$4 nodes=$5 gpus=$6
shift 6
[ -z "$venv" ] || { PATH=$venv/bin:$PATH; export PATH; }
at=$head:$port
case $head in *:*) at=[$head]:$port ;; esac
ray= driver=
down() {
  trap "" TERM INT
  [ -z "$driver" ] || { kill -TERM $driver 2>/dev/null; wait $driver; }
  if [ -n "$ray" ] && kill -TERM $ray 2>/dev/null; then
    i=0
    while kill -0 $ray 2>/dev/null && [ $i -lt ${RAY_STOP_SECONDS} ]; do sleep 1; i=$((i+1)); done
    kill -KILL $ray 2>/dev/null
  fi
  exit $1
}
trap "down 143" TERM INT
command -v ray >/dev/null || { ray --version; exit 127; }
start="ray start --block --node-ip-address=$own --num-gpus=$gpus --disable-usage-stats"
if [ $# -gt 0 ]; then $start --head --port="$port" & ray=$!; fi
echo "Waiting for Ray at $at."
i=0
until python3 -c "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)" "$head" "$port" 2>/dev/null; do
  [ -z "$ray" ] || kill -0 $ray 2>/dev/null || { echo "Ray ended before it was up."; down 1; }
  i=$((i+1)); [ $i -lt ${RAY_JOIN_SECONDS} ] || { echo "No answer from Ray at $at."; down 1; }
  sleep 1
done
if [ $# -eq 0 ]; then
  $start --address="$at" & ray=$!
  wait $ray; code=$?; ray=; down $code
fi
python3 -c "$(cat <<\PY
import sys, time
import ray

head, wanted, limit = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
ray.init(address=head, logging_level="ERROR", log_to_driver=False)
told = ""
while True:
    there = sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])
    text = f"{len(there)} of {wanted} nodes: " + ", ".join(there)
    if text != told:
        print("Ray has", text, flush=True)
        told = text
    if len(there) >= wanted:
        break
    if time.monotonic() > limit:
        sys.exit(f"Ray has only {text}")
    time.sleep(0.5)
PY
)" "$at" "$nodes" ${RAY_JOIN_SECONDS} &
driver=$!
wait $driver; code=$?; driver=
[ $code = 0 ] || down $code
(unset NCCL_SOCKET_IFNAME NCCL_IB_HCA; RAY_ADDRESS=$at; export RAY_ADDRESS; exec "$@") &
driver=$!
wait $driver; code=$?; driver=
down $code
`;
