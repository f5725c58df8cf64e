import type { Story, StoryHost, StoryImage } from '../story.ts';

/** The two Sparks that every story has: the head is reached directly, the worker through the head only. */
const SPARK_A: StoryHost = {
  name: 'spark-a',
  user: 'aurora',
  management: { address: '10.1.230.180', prefix: 24, fromController: true },
  fabric: { address: '192.168.200.12', prefix: 24, second: '192.168.201.12', cage: 0 },
  totalGiB: 121.69,
  systemGiB: 4.3,
  cacheGiB: 1.4,
  etcHosts: 'own-name-on-loopback',
  sudoPassword: undefined,
  hasModel: true,
  holders: [],
};

const SPARK_B: StoryHost = {
  ...SPARK_A,
  name: 'spark-b',
  management: { address: '10.1.231.181', prefix: 24, fromController: false },
  fabric: { address: '192.168.200.13', prefix: 24, second: '192.168.201.13', cage: 1 },
  totalGiB: 119.7,
  systemGiB: 3.9,
};

export function spark(which: 'a' | 'b', differs: Partial<StoryHost>): StoryHost {
  return { ...(which === 'a' ? SPARK_A : SPARK_B), ...differs };
}

export function images(unsets: readonly string[] = []): readonly StoryImage[] {
  return [
    { engine: 'sglang', reference: 'lmsysorg/sglang:v0.5.18-spark', arch: 'arm64', unsets },
    { engine: 'vllm', reference: 'nvcr.io/nvidia/vllm:26.09-py3', arch: 'arm64', unsets },
  ];
}

const MODEL_PATH = '/home/aurora/models/Qwen3.5-122B-A10B-FP8';

const VOLUME = '/home/aurora/models:/home/aurora/models:ro';

/** How ranks are run: in these images, with the models' folder, and more of the host's folders where these are named. */
export function run(...volumes: readonly string[]): Readonly<Record<string, unknown>> {
  return {
    in: 'docker',
    image: Object.fromEntries(images().map(({ engine, reference }) => [engine, reference])),
    volumes: [VOLUME, ...volumes],
  };
}

/** How the model is served, with what differs. */
export function serve(differs: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { port: 30000, listen: 'loopback', name: 'qwen3.5-122b', ...differs };
}

export function recipe(differs: Story['recipe']): Story['recipe'] {
  return {
    recipe: 'qwen3.5-122b',
    model: 'Qwen/Qwen3.5-122B-A10B-FP8',
    path: MODEL_PATH,
    engines: ['sglang', 'vllm'],
    layout: { nodes: 2, tensor: 2 },
    context: 131072,
    sequences: 16,
    run: run(),
    serve: serve({}),
    ...differs,
  };
}
