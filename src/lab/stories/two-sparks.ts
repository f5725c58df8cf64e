import type { Story } from '../story.ts';
import { images, recipe, spark } from './sparks.ts';

/** Everything of the first issue: three holders on the worker, full caches, sudo with a password, names on loopback. */
export const twoSparks: Story = {
  name: 'two-sparks',
  title: 'Two Sparks, somebody else’s work on the worker, and names that lead to loopback',
  cluster: 'sparks',
  hosts: [
    spark('a', { cacheGiB: 114.2, sudoPassword: 'northern-light' }),
    spark('b', {
      cacheGiB: 38.3,
      sudoPassword: 'northern-light',
      holders: [
        {
          kind: 'container',
          name: 'comfyui',
          user: 'root',
          uid: 0,
          image: 'ghcr.io/ai-dock/comfyui:v2-cuda-13.0',
          argv: ['python3', 'main.py', '--listen', '0.0.0.0', '--port', '8188'],
          cwd: '/opt/ComfyUI',
          restart: 'always',
          autoRemove: false,
          labels: {},
          listens: [{ address: '0.0.0.0', port: 8188 }],
          gpuGiB: 21.4,
          residentGiB: 1.2,
        },
        {
          kind: 'unit',
          name: 'ollama.service',
          description: 'Ollama Service',
          user: 'ollama',
          uid: 997,
          argv: ['ollama', 'runner', '--model', 'llama3.3-70b', '--port', '11434'],
          cwd: '/usr/share/ollama',
          restart: 'always',
          restartSeconds: 1,
          listens: [{ address: '127.0.0.1', port: 11434 }],
          gpuGiB: 30.5,
          residentGiB: 0.9,
        },
        {
          kind: 'process',
          name: 'llama-server',
          user: 'root',
          uid: 0,
          argv: ['llama-server', '--model', '/srv/gguf/qwen3-32b-q4_k_m.gguf', '--port', '8080'],
          cwd: '/srv/gguf',
          listens: [{ address: '0.0.0.0', port: 8080 }],
          gpuGiB: 20.1,
          residentGiB: 0.6,
        },
      ],
    }),
  ],
  images: images(),
  firewall: [],
  recipe: recipe({ network: 'engine' }),
  timeline: [],
  consents: [
    { node: 'spark-b', holder: 'comfyui' },
    { node: 'spark-b', holder: 'ollama.service' },
    { node: 'spark-b', holder: 'llama-server' },
  ],
  passwords: { 'spark-a': 'northern-light', 'spark-b': 'northern-light' },
  expect: {
    events: [
      { type: 'finding', cause: 'loopback-address-advertised' },
      { type: 'remedy-proved', cause: 'loopback-address-advertised' },
      { type: 'run-ended', outcome: 'serving' },
      { type: 'run-ended', outcome: 'restored' },
    ],
    outcome: 'serving',
    restored: true,
  },
};
