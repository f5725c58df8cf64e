#!/usr/bin/env python3
"""What scripts/gpu-e2e makes of firstlight's events and the ranks' logs.

    gpu-table.py tell EVENTS          a line for each thing that matters in a run
    gpu-table.py consents EVENTS      ids of the steps that the run asked about
    gpu-table.py words EVENTS FOLDER  words-a.sh and words-b.sh: the ranks as the run planned them
    gpu-table.py stamp                stdin to stdout, with the milliseconds before each line, as firstlight keeps logs
    gpu-table.py compare FOLDER N     stages and speed, by firstlight and by hand
"""

import json
import os
import re
import shlex
import statistics
import sys
import time
from datetime import datetime

GIB = 2**30
# The same in vLLM and in torch-engine.py.
LANDMARKS = [
    ("rank 0 writes its first line", re.compile("")),
    ("rendezvous begins", re.compile(r"world_size=2 rank=0 ")),
    ("ranks have met", re.compile(r"is assigned as DP rank")),
    ("weights are read", re.compile(r"Loading weights took")),
    ("cache is made", re.compile(r"GPU KV cache size")),
    ("engine is ready", re.compile(r"init engine .*took")),
    ("API answers", re.compile(r"Application startup complete")),
]


def main():
    verb, *words = sys.argv[1:]
    {"tell": tell, "consents": consents, "words": words_of, "stamp": stamp, "compare": compare}[verb](*words)


def events_in(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith('{"v":1')]


def at(event):
    return datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp()


def tell(path):
    events = events_in(path)
    if not events:
        raise SystemExit("no event was written")
    start = at(events[0])
    stages, said = {}, None
    for event in events:
        kind = event["type"]
        if kind == "rank-started":
            stages = {}
        elif kind == "rank-stage" and event["rank"] == 0:
            stages.setdefault(event["stage"], round(at(event) - start, 1))
        elif kind == "consent-asked":
            for step in event["steps"]:
                print(f"  asks: {step['title']} on {step['node']} ({step['target']['what']}), {step['target']['bytes'] / GIB:.1f} GiB")
        elif kind == "step-ended" and event["kind"].startswith("stop-"):
            print(f"  {event['title']} on {event['node']}: {event['result']} after {event['milliseconds'] / 1000:.1f} s")
        elif kind == "finding":
            line = f"  finding: {event['cause']} on {event.get('node')}: {event['title']}"
            for quote in event["quotes"][:2]:
                line += f"\n    | {quote['text'][:150]}"
            if line != said:
                print(line)
            said = line
        elif kind in ("remedy-applied", "remedy-proved"):
            print(f"  {kind}: {event['title']}")
        elif kind == "note" and event["level"] == "warning":
            print(f"  warns: {event['text']}")
        elif kind == "serving":
            print(f"  serving after {at(event) - start:.1f} s, answer {event['answer']!r}, network: {event['networkText']}")
            print(f"  stages of rank 0: {stages}")
        elif kind == "measured":
            print(f"  its own proof: TTFT {event['firstTokenSeconds']:.3f} s, {event['tokensPerSecond']:.1f} tok/s by usage of {event['outputTokens']} tokens")
        elif kind == "run-ended":
            print(f"  ended {event['outcome']} after {at(event) - start:.1f} s: {event['why'][:200]}")


def consents(path):
    ids = {step["id"]: 0 for event in events_in(path) if event["type"] == "consent-asked" for step in event["steps"]}
    print(",".join(ids))


def words_of(path, folder):
    planned = [event["plan"] for event in events_in(path) if event["type"] == "planned"]
    services = [one for phase in planned[-1]["phases"] for one in phase.get("services", [])] if planned else []
    if len(services) != 2:
        raise SystemExit("no launch was planned")
    for service in services:
        lines = [f"export {name}={shlex.quote(value)}" for name, value in service["env"].items()]
        lines += ["cd", "exec " + shlex.join(service["argv"])]
        with open(os.path.join(folder, f"words-{'ab'[service['rank']]}.sh"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        print(f"  rank {service['rank']}: {shlex.join(service['argv'])}")


def stamp():
    for line in sys.stdin.buffer:
        sys.stdout.write(f"{time.time_ns() // 1_000_000}\t{line.decode('utf-8', 'replace')}")
        sys.stdout.flush()


def landmarks(path):
    """Epoch seconds at which rank 0 was seen at each of them."""
    seen = {}
    if not os.path.exists(path):
        return seen
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            when, _, text = line.partition("\t")
            for name, pattern in LANDMARKS:
                if name not in seen and when.isdigit() and pattern.search(text):
                    seen[name] = int(when) / 1000
    return seen


def compare(folder, pairs):
    names = ["cold"] + [f"{kind}{pair}" for pair in range(1, int(pairs) + 1) for kind in ("warm", "hand")]
    columns = {name: column(folder, name) for name in names}
    rows = ["ranks are started", *(name for name, _ in LANDMARKS), "proved, command back", "/health answers"]
    print("== seconds from the start of the command")
    table([["", *names]] + [
        [row, *(f"{columns[name][row]:.1f}" if row in columns[name] else "" for name in names)] for row in rows
    ])
    over, outside = [], []
    for pair in range(1, int(pairs) + 1):
        warm, hand = columns[f"warm{pair}"], columns[f"hand{pair}"]
        if "proved, command back" in warm and "/health answers" in hand and "API answers" in warm:
            over.append(warm["proved, command back"] - hand["/health answers"])
            outside.append(warm["ranks are started"] + warm["proved, command back"] - warm["API answers"])
    if over:
        print(f"firstlight over the same by hand, warm connections: {', '.join(f'{one:.1f}' for one in over)} s; median {statistics.median(over):.1f} s")
        print(f"of up, outside of the engine's own time (look, plan, start; two questions, exit): median {statistics.median(outside):.1f} s")
    print("== speed by usage, one stream")
    lines = [["", "TTFT s", "tok/s", "least", "most"]]
    medians = {"warm": [], "hand": []}
    for name in names:
        path = os.path.join(folder, f"{name}.speed")
        text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if not text.strip():
            lines.append([name, "none"])
            continue
        speed = json.loads(text)
        lines.append([name, *(str(speed[key]) for key in ("firstTokenSeconds", "tokensPerSecond", "least", "most"))])
        if name[:4] in medians:
            medians[name[:4]].append(speed)
    table(lines)
    if all(medians.values()):
        mean = {kind: statistics.mean(one["tokensPerSecond"] for one in all_) for kind, all_ in medians.items()}
        spread = [one["tokensPerSecond"] for all_ in medians.values() for one in all_]
        first = {kind: statistics.median(one["firstTokenSeconds"] for one in all_) for kind, all_ in medians.items()}
        print(
            f"tokens per second: {mean['warm']:.1f} by firstlight, {mean['hand']:.1f} by hand: "
            f"{100 * (mean['warm'] / mean['hand'] - 1):+.1f} %; all medians lie within {min(spread)} to {max(spread)}"
        )
        print(f"TTFT: {first['warm'] * 1000:.1f} ms by firstlight, {first['hand'] * 1000:.1f} ms by hand")


def column(folder, name):
    with open(os.path.join(folder, f"{name}.wall.json"), encoding="utf-8") as file:
        wall = json.load(file)
    if name.startswith("hand"):
        seen = landmarks(os.path.join(folder, f"{name}-a.log"))
        told = {"/health answers": wall["ended"]}
    else:
        events = events_in(os.path.join(folder, f"{name}.json"))
        run = events[0]["run"]
        seen = landmarks(os.path.join(folder, "ctl", "state", "logs", str(run), "a1-r0.log"))
        started = [at(event) for event in events if event["type"] == "rank-started"]
        told = {"proved, command back": wall["ended"]}
        if started:
            told["ranks are started"] = max(started[:2])
    return {row: when - wall["began"] for row, when in {**seen, **told}.items()}


def table(rows):
    wide = max(len(row) for row in rows)
    rows = [row + [""] * (wide - len(row)) for row in rows]
    sizes = [max(len(row[at_]) for row in rows) for at_ in range(wide)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(size) if at_ == 0 else cell.rjust(size) for at_, (cell, size) in enumerate(zip(row, sizes))).rstrip())


main()
