"""Stands in for `vllm serve … --distributed-executor-backend ray` on hosts without a GPU.

What vLLM asks of Ray it really asks: all GPUs as one placement group that packs, an actor in each, in the environment
of its own node's Ray, over the Ray of RAY_ADDRESS. It then serves what firstlight asks for, with a fixed answer.
"""

import http.server
import json
import os
import signal
import sys
import time

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def flag(name, otherwise):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


def log(text):
    print(time.strftime("(EngineCore pid=1) INFO %m-%d %H:%M:%S [stand_in.py:1] ") + text, flush=True)


@ray.remote(num_gpus=1, num_cpus=0)
class RayWorkerProc:
    def load(self, rank):
        print(time.strftime("INFO %m-%d %H:%M:%S [default_loader.py:430] ") + f"Loading weights took {rank}.50 seconds", flush=True)
        names = ("VLLM_HOST_IP", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "RAY_memory_monitor_refresh_ms")
        return {"address": ray.util.get_node_ip_address(), "host": os.uname().nodename, **{name: os.environ.get(name) for name in names}}


class Api(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        cards = {"object": "list", "data": [{"id": flag("--served-model-name", "model"), "object": "model"}]}
        self.answer("application/json", b"" if self.path == "/health" else json.dumps(cards).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for text in ("It", " is", " 204", "."):
            self.wfile.write(f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.05)
        usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
        self.wfile.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())


world = int(flag("--tensor-parallel-size", "1"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ray.init(logging_level="ERROR")
print("DRIVER", json.dumps({name: os.environ.get(name) for name in ("NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "RAY_ADDRESS")}), flush=True)
log("No current placement group found. Creating a new placement group.")
group = placement_group([{"GPU": 1.0}] * world, strategy="PACK")
ray.get(group.ready(), timeout=120)
workers = [
    RayWorkerProc.options(
        scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
    ).remote()
    for index in range(world)
]
for place in ray.get([worker.load.remote(rank) for rank, worker in enumerate(workers)]):
    print("WORKER", json.dumps(place), flush=True)
time.sleep(2)  # Ray brings the workers' lines twice a second.
log("init engine (profile, create kv cache, warmup model) took 1.00 s")
server = http.server.ThreadingHTTPServer((flag("--host", "127.0.0.1"), int(flag("--port", "8000"))), Api)
print("INFO:     Application startup complete.", flush=True)
server.serve_forever()
