#!/usr/bin/env python3
"""Times an OpenAI-style server by its own usage: speed.py URL MODEL ROUNDS TOKENS; prints one line of JSON.

One stream at a time, each TOKENS long whatever the model says. First token: seconds from sending. Tokens per second:
those after the first, over the time from the first to the last.
"""

import json
import statistics
import sys
import time
import urllib.request


def main():
    url, model = sys.argv[1:3]
    rounds, tokens = int(sys.argv[3]), int(sys.argv[4])
    once(url, model, tokens)  # the first has kernels to load
    firsts, speeds = zip(*(once(url, model, tokens) for _ in range(rounds)))
    print(json.dumps({
        "rounds": rounds, "tokens": tokens,
        "firstTokenSeconds": round(statistics.median(firsts), 4),
        "tokensPerSecond": round(statistics.median(speeds), 1),
        "least": round(min(speeds), 1), "most": round(max(speeds), 1),
    }))


def once(url, model, tokens):
    body = {
        "model": model, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": tokens,
        "ignore_eos": True, "temperature": 0, "messages": [{"role": "user", "content": "Count from 1 to 40, in words."}],
    }
    request = urllib.request.Request(
        url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    began, first, last, count = time.monotonic(), None, None, 0
    with urllib.request.urlopen(request, timeout=120) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                count = event["usage"]["completion_tokens"]
            # The first chunk may tell the role alone.
            elif any(one["delta"].get("content") for one in event["choices"]):
                last = time.monotonic()
                first = first or last
            elif event["choices"] and event["choices"][0].get("finish_reason"):
                last = time.monotonic()
    if count != tokens:
        raise SystemExit(f"{count} tokens came, {tokens} were asked for")
    return first - began, (count - 1) / (last - first)


main()
