#!/usr/bin/env python3
"""A small engine whose ranks really meet: torch.distributed over Gloo or NCCL, behind vLLM's command line and API.

It loads the safetensors shards of tiny-model.py, and each token is one matrix product that all ranks share, each with
its own columns, summed over the wire. What it prints follows vLLM's lines, so that the same adapter follows it.
    torch-engine.py serve MODEL --tensor-parallel-size 2 --nnodes 2 --node-rank R --master-addr A --master-port P
ENGINE_WAIT_SECONDS is slept before anything, the file ENGINE_WAIT_FILE is waited for, ENGINE_LOAD_SECONDS is slept over
the shards; under VLLM_CACHE_ROOT a rank keeps its share of the weights.
"""

import argparse
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def say(text, level="INFO"):
    stamp = time.strftime("%m-%d %H:%M:%S")
    for line in str(text).splitlines():
        print(f"{level} {stamp} [torch_engine.py:1] {line}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="vllm", usage="vllm serve [model_tag] [options]", allow_abbrev=False)
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("model")
    for name, default in [
        ("tensor-parallel-size", 1), ("pipeline-parallel-size", 1), ("data-parallel-size", 1), ("nnodes", 1),
        ("node-rank", 0), ("master-port", 29501), ("port", 8000), ("max-model-len", 0), ("max-num-seqs", 16),
        ("max-num-batched-tokens", 256), ("kv-cache-memory-bytes", 2**30), ("distributed-timeout-seconds", 120),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in [
        ("master-addr", "127.0.0.1"), ("host", "127.0.0.1"), ("served-model-name", None),
        ("reasoning-parser", None), ("tool-call-parser", None), ("load-format", "auto"),
    ]:
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    for name in ["headless", "enforce-eager", "enable-auto-tool-choice", "enable-expert-parallel"]:
        parser.add_argument(f"--{name}", action="store_true")
    args, strange = parser.parse_known_args()
    if strange:
        parser.error(f"unrecognized arguments: {' '.join(strange)}")
    return args


def main():
    args = arguments()
    say("vLLM server version 0.0.0+torch-engine")
    say(f"non-default args: {vars(args)}")
    folder = args.model
    config = read_config(folder)
    if config["num_attention_heads"] % args.tensor_parallel_size:
        raise ValueError(
            f"Total number of attention heads ({config['num_attention_heads']}) must be divisible by tensor "
            f"parallel size ({args.tensor_parallel_size})."
        )
    if args.max_model_len > config["max_position_embeddings"]:
        raise ValueError(
            f"User-specified max_model_len ({args.max_model_len}) is greater than the derived max_model_len "
            f"(max_position_embeddings={config['max_position_embeddings']} or model_max_length=None in model's "
            "config.json)."
        )
    ranks = Ranks(args)
    model = Model(folder, config, ranks, args)
    if ranks.rank != 0:
        say("Graph capturing finished in 0 secs, took 0.00 GiB")
        model.follow()
        return
    say("Graph capturing finished in 0 secs, took 0.00 GiB")
    say("init engine (profile, create kv cache, warmup model) took 0.10 seconds")
    serve(args, model)


def read_config(folder):
    path = os.path.join(folder, "config.json")
    if not os.path.isfile(path):
        raise OSError(f"{folder} does not appear to have a file named config.json.")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Ranks:
    """The job's ranks, met through torch's own store."""

    def __init__(self, args):
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.world, self.rank = args.nnodes, args.node_rank
        self.cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", 0) if self.cuda else torch.device("cpu")
        backend = "nccl" if self.cuda else "gloo"
        where = f"tcp://{args.master_addr}:{args.master_port}"
        say(f"world_size={self.world} rank={self.rank} local_rank=0 distributed_init_method={where} backend={backend}")
        seconds = args.distributed_timeout_seconds
        from datetime import timedelta

        if self.cuda:
            torch.cuda.set_device(self.device)
            free, total = torch.cuda.mem_get_info()
            wanted = total * args.gpu_memory_utilization
            if free < wanted:
                gib = 2**30
                raise ValueError(
                    f"Free memory on device cuda:0 ({free / gib:.2f}/{total / gib:.2f} GiB) on startup is less than "
                    f"desired GPU memory utilization ({args.gpu_memory_utilization}, {wanted / gib:.2f} GiB). Decrease "
                    "GPU memory utilization or reduce GPU memory used by other processes."
                )
        dist.init_process_group(
            backend, init_method=where, world_size=self.world, rank=self.rank, timeout=timedelta(seconds=seconds)
        )
        one = torch.ones(1, device=self.device)
        dist.all_reduce(one)
        if int(one.item()) != self.world:
            raise RuntimeError(f"{int(one.item())} ranks answered, {self.world} were expected")
        say(
            f"rank {self.rank} in world size {self.world} is assigned as DP rank 0, PP rank 0, PCP rank 0, "
            f"TP rank {self.rank}, EP rank N/A, EPLB rank N/A"
        )


class Model:
    """Embedding and head of the checkpoint; the columns of both are shared out over the ranks."""

    def __init__(self, folder, config, ranks, args):
        torch = ranks.torch
        self.ranks, self.config = ranks, config
        say(f"Starting to load model {folder}...")
        began = time.time()
        self.ballast, read = [], {}

        def tensor(entry):
            """A rank's own columns, on its device."""
            shape, raw = entry
            share = shape[1] // ranks.world
            bits = torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).reshape(shape)
            return bits[:, ranks.rank * share : (ranks.rank + 1) * share].contiguous().to(ranks.device)

        for name, entry in load_shards(folder):
            if name.startswith("ballast."):
                self.ballast.append(tensor(entry))
            elif name in ("model.embed_tokens.weight", "lm_head.weight"):
                read[name] = tensor(entry).float()
        self.codes = read["model.embed_tokens.weight"]
        self.head = read["lm_head.weight"].T.contiguous()
        say(f"Loading weights took {time.time() - began:.2f} seconds")
        size = (self.codes.numel() + self.head.numel()) * 4 + sum(one.numel() * 2 for one in self.ballast)
        say(f"Model loading took {size / 2**30:.2f} GiB memory and {time.time() - began:.2f} seconds")
        self.keep(args)
        self.profile(args)
        cache(config, args)
        self.end = config["eos_token_id"]
        self.lock = threading.Lock()

    def keep(self, args):
        """Its share as a file, for a start that need not read the whole checkpoint."""
        root = os.environ.get("VLLM_CACHE_ROOT")
        if root is None:
            return
        os.makedirs(root, exist_ok=True)
        share = {"codes": self.codes, "head": self.head}
        self.ranks.torch.save(share, os.path.join(root, f"rank{self.ranks.rank}.pt"))

    def profile(self, args):
        """A batch as large as there may be one, over all ranks, as engines do before they size their cache."""
        torch, dist = self.ranks.torch, self.ranks.dist
        began = time.time()
        batch = torch.ones(args.max_num_batched_tokens, self.head.shape[0], device=self.ranks.device)
        dist.all_reduce(batch)
        say(f"Initial profiling/warmup run took {time.time() - began:.2f} s")

    def step(self, token):
        """The token after this one: one product, summed over all ranks."""
        torch, dist = self.ranks.torch, self.ranks.dist
        asked = torch.tensor([token], device=self.ranks.device)
        dist.broadcast(asked, src=0)
        if int(asked.item()) < 0:
            return None
        if self.ballast:
            state = torch.ones(self.ballast[0].shape[1], device=self.ranks.device, dtype=torch.bfloat16)
            for one in self.ballast:
                whole = one @ state
                dist.all_reduce(whole)
                share = state.numel()
                state = (whole / whole.norm())[self.ranks.rank * share : (self.ranks.rank + 1) * share].contiguous()
        logits = self.codes[asked] @ self.head
        dist.all_reduce(logits)
        return int(logits.argmax().item())

    def follow(self):
        """A worker: takes part in every step until it is told to end."""
        while self.step(0) is not None:
            pass

    def answer(self, limit, past_end):
        """The text of each token. Whatever was asked, generation begins after the token that opens the assistant's turn."""
        token = 257
        for _ in range(limit):
            token = self.step(token)
            yield bytes([token]).decode("latin1") if token < 256 else ""
            if token == self.end and not past_end:
                return

    def close(self):
        self.step(-1)


def cache(config, args):
    """Whether one request of the longest context fits, by vLLM's arithmetic and in its words."""
    heads = max(1, config["num_key_value_heads"] // args.tensor_parallel_size)
    token = 2 * config["num_hidden_layers"] * heads * config["head_dim"] * 2
    wanted, there = (args.max_model_len or config["max_position_embeddings"]) * token, args.kv_cache_memory_bytes
    gib = 2**30
    say(f"Available KV cache memory: {there / gib:.2f} GiB")
    if wanted > there:
        raise ValueError(
            f"To serve at least one request with the model's max seq len ({wanted // token}), ({wanted / gib:.2f} GiB "
            f"KV cache is needed, which is larger than the available KV cache memory ({there / gib:.2f} GiB). Based on "
            f"the available memory, the estimated maximum model length is {there // token}. Try increasing "
            "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
        )
    say(f"GPU KV cache size: {there // token:,} tokens")


class SafetensorError(Exception):
    """As the safetensors package calls it, in its words."""


def load_shards(folder):
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        names = json.load(file)["weight_map"]
    shards = sorted(set(names.values()))
    slow = float(os.environ.get("ENGINE_LOAD_SECONDS", "0"))
    for at, shard in enumerate(shards):
        time.sleep(slow / len(shards))
        with open(os.path.join(folder, shard), "rb") as file:
            raw = file.read()
        (length,) = struct.unpack("<Q", raw[:8])
        if length > 100_000_000 or 8 + length > len(raw):
            raise SafetensorError("Error while deserializing header: header too large")
        header = json.loads(raw[8 : 8 + length])
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            start, stop = entry["data_offsets"]
            if 8 + length + stop > len(raw):
                raise SafetensorError("Error while deserializing header: incomplete metadata, file not fully covered")
            yield name, (entry["shape"], raw[8 + length + start : 8 + length + stop])
        done = (at + 1) * 100 // len(shards)
        print(f"Loading safetensors checkpoint shards: {done:3d}% Completed | {at + 1}/{len(shards)}", flush=True)


def serve(args, model):
    name = args.served_model_name or args.model

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def send(self, status, body, kind="application/json"):
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self):
            if self.path == "/health":
                return self.send(200, b"", "text/plain")
            if self.path == "/v1/models":
                return self.send(200, {"object": "list", "data": [{"id": name, "object": "model"}]})
            if self.path == "/version":
                return self.send(200, {"version": "0.0.0+torch-engine"})
            return self.send(404, {"error": {"message": "Not Found"}})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
            if self.path not in ("/v1/chat/completions", "/v1/completions"):
                return self.send(404, {"error": {"message": "Not Found"}})
            limit = body.get("max_completion_tokens") or body.get("max_tokens") or 64
            prompt = json.dumps(body.get("messages") or body.get("prompt") or "")
            with model.lock:
                pieces = model.answer(limit, body.get("ignore_eos", False))
                if body.get("stream"):
                    self.stream(body, pieces, len(prompt))
                else:
                    self.send(200, self.whole(list(pieces), len(prompt)))

        def usage(self, prompt, count):
            return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}

        def whole(self, pieces, prompt):
            text = "".join(pieces)
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "text": text, "finish_reason": "stop"}
            return {"id": "chatcmpl-1", "object": "chat.completion", "model": name, "choices": [choice],
                    "usage": self.usage(prompt, len(pieces))}

        def stream(self, body, pieces, prompt):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": name}
            count = 0

            def chunk(choices, usage=None):
                line = {**head, "choices": choices, **({"usage": usage} if usage else {})}
                self.wfile.write(f"data: {json.dumps(line)}\n\n".encode())
                self.wfile.flush()

            for piece in pieces:
                count += 1
                chunk([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
            chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
            if (body.get("stream_options") or {}).get("include_usage"):
                chunk([], self.usage(prompt, count))
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in args.host else socket.AF_INET

    try:
        server = Server((args.host, args.port), Handler)
    except OSError as error:
        say(f"[Errno {error.errno}] error while attempting to bind on address ('{args.host}', {args.port}): "
            f"{os.strerror(error.errno).lower()}", "ERROR")
        raise

    def stop(*_):
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    say(f"Starting vLLM server on http://{args.host}:{args.port}")
    say("Application startup complete.")
    server.serve_forever()
    with model.lock:
        model.close()


if __name__ == "__main__":
    if os.environ.get("ENGINE_WAIT_SECONDS"):
        time.sleep(float(os.environ["ENGINE_WAIT_SECONDS"]))
    while not os.path.exists(os.environ.get("ENGINE_WAIT_FILE", "/")):
        time.sleep(0.05)
    sys.exit(main())
