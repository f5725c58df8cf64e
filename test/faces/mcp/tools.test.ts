import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { askedRun, openRig, type Rig } from '../http/rig.ts';
import { type Agent, agentOverHttp } from './agent.ts';

let rig: Rig;
let agent: Agent;
beforeAll(async () => {
  rig = await openRig();
  agent = await agentOverHttp(rig.addresses.base, rig.addresses.agent);
});
afterAll(async () => {
  await agent.close();
  await rig.close();
});

const LOOKS = ['look', 'plan', 'status', 'logs', 'diagnose', 'evidence'];
const USES = ['chat'];
const CHANGES = ['up', 'down', 'restore'];

describe('the face for agents', () => {
  it('has ten tools, each with an output schema, and says which of them change something', async () => {
    const { tools } = await agent.client.listTools();
    expect(tools.map((tool) => tool.name).sort()).toEqual([...LOOKS, ...USES, ...CHANGES].sort());
    for (const tool of tools) {
      expect(tool.outputSchema?.properties).toHaveProperty('left_out');
      expect(tool.annotations?.readOnlyHint).toBe(LOOKS.includes(tool.name));
      expect(tool.annotations?.destructiveHint).toBe(CHANGES.includes(tool.name));
    }
    // None of them gives consent, and none of their inputs does.
    expect(JSON.stringify(tools.map((tool) => tool.inputSchema))).not.toMatch(
      /"consent"|"allow"|"replace"|"force"/,
    );
  });

  it('has the cluster, recipes and runs to read, and two prompts', async () => {
    const run = askedRun(rig.journal);
    const read = async (uri: string): Promise<unknown> => {
      const { contents } = await agent.client.readResource({ uri });
      return JSON.parse(z.object({ text: z.string() }).parse(contents[0]).text);
    };
    expect(await read('firstlight://cluster')).toMatchObject({ nodes: [{ name: 'spark-a' }] });
    expect(await read('firstlight://recipes')).toMatchObject({ recipes: [{ file: 'recipe.yaml' }] });
    expect(await read('firstlight://recipe/recipe.yaml')).toMatchObject({
      recipe: 'tiny',
      engines: ['vllm'],
    });
    expect(await read('firstlight://runs')).toMatchObject({ runs: [{ run }] });
    expect(await read(`firstlight://run/${run}`)).toMatchObject({
      now: expect.stringContaining('Waiting for you'),
    });
    await expect(read('firstlight://recipe/../../etc/passwd')).rejects.toThrow();
    await expect(read('firstlight://recipe/none.yaml')).rejects.toMatchObject({
      code: -32602,
      message: expect.stringMatching(/none\.yaml.*What to do: /s),
    });
    for (const none of ['999999', '0', 'latest', '..%2F..%2Fetc'])
      await expect(read(`firstlight://run/${none}`)).rejects.toMatchObject({
        code: -32002,
        message: expect.stringMatching(/There is no run .*What to do: read firstlight:\/\/runs/),
      });
    const { resources } = await agent.client.listResources();
    expect(resources.map(({ uri }) => uri)).toContain('firstlight://recipe/recipe.yaml');
    const { prompts } = await agent.client.listPrompts();
    expect(prompts.map(({ name }) => name).sort()).toEqual(['bring-up', 'diagnose']);
    const prompt = await agent.client.getPrompt({ name: 'bring-up', arguments: { recipe: 'recipe.yaml' } });
    expect(JSON.stringify(prompt.messages)).toContain('recipe.yaml');
  });

  it('says what, why and what to do where it cannot, and no path beside the cluster file', async () => {
    const bad = await agent.call('plan', { recipe: '/etc/passwd' });
    expect(bad.failed).toBe(true);
    expect(bad.text).toContain('What to do: Put the recipe beside the cluster file');
    const look = await agent.call('look');
    expect(look.data).toMatchObject({ nodes: [{ node: 'spark-a', reached: false }] });
    expect((await agent.call('chat', { prompt: 'hello' })).failed).toBe(true);
    expect((await agent.call('logs', { run: '999999' })).text).toContain('no-such-run');
  });

  it('passes over no policy that names a node which is none, before any look', async () => {
    const policy = join(rig.folder, 'policy.yaml');
    writeFileSync(policy, 'allow:\n  - {node: spark-b, kind: unit, name: ollama.service, user: ollama}\n', {
      mode: 0o600,
    });
    try {
      const told = await agent.call('plan', { recipe: 'recipe.yaml' });
      expect(told.failed).toBe(true);
      expect(told.text).toContain(`${policy}:2:12: no node of the cluster is called "spark-b"`);
      expect(told.text).toContain('as it is called there (spark-a), or take the rule away');
      const up = await rig.post('/api/operations/up', { recipe: 'recipe.yaml' });
      expect(up.json()).toMatchObject({ code: 'bad-policy-file' });
    } finally {
      rmSync(policy);
    }
  });

  it('gives bounded logs, by rank, and says what it left out', async () => {
    const run = rig.journal.newRun();
    const head = { cluster: 'sparks', recipe: 'tiny', recipeDigest: undefined, nodes: ['spark-a'] };
    const controller = { host: 'laptop', user: 'aurora', pid: 1 };
    rig.journal.append(run, { type: 'run-started', operation: 'up', ...head, controller, version: '0' });
    for (const rank of [0, 1])
      rig.journal.append(run, {
        type: 'rank-started',
        attempt: 1,
        node: 'spark-a',
        rank,
        role: rank === 0 ? 'head' : 'worker',
        engine: 'vllm',
        name: `tiny-r${rank}`,
        log: '/log',
        followed: false,
      });
    for (const rank of [0, 1])
      rig.journal.appendLog(
        run,
        1,
        rank,
        Array.from({ length: 500 }, (_, at) => ({
          at: at * 10 + rank,
          text: `line ${at} ${'x'.repeat(900)}`,
        })),
      );
    const told = await agent.call('logs', { run, rank: 1, tail: 200 });
    const { lines, left_out } = z
      .object({ lines: z.array(z.string()), left_out: z.array(z.string()) })
      .parse(told.data);
    expect(lines.at(-1)).toMatch(/^1 500 start line 499 x+$/);
    expect(lines.every((line) => line.startsWith('1 '))).toBe(true);
    expect(told.text.length).toBeLessThan(16_000);
    expect(left_out.join(' ')).toMatch(/300 earlier lines.*did not fit.*characters/s);
  });

  it('is told no secret value that is known', async () => {
    const key = 'southern-dark-ocean';
    const keyed = await openRig({ env: { TINY_KEY: key } });
    const reader = await agentOverHttp(keyed.addresses.base, keyed.addresses.agent);
    try {
      const recipe = readFileSync(join(keyed.folder, 'recipe.yaml'), 'utf8');
      writeFileSync(join(keyed.folder, 'keyed.yaml'), `${recipe}serve: {apiKey: {env: TINY_KEY}}\n`);
      // From here on its value is known.
      await keyed.post('/api/operations/up', { recipe: 'keyed.yaml' });
      const run = keyed.journal.newRun();
      const controller = { host: 'laptop', user: 'aurora', pid: 1 };
      const head = { cluster: 'sparks', recipe: key, recipeDigest: undefined, nodes: ['spark-a'] };
      keyed.journal.append(run, { type: 'run-started', operation: 'up', ...head, controller, version: '0' });
      keyed.journal.append(run, { type: 'run-ended', outcome: 'stopped', why: key, exit: 0, owed: [] });
      const runs = await reader.client.readResource({ uri: 'firstlight://runs' });
      expect(JSON.stringify(runs)).toContain('•••');
      expect(JSON.stringify(runs)).not.toContain(key);
      const told = await reader.call('plan', { recipe: `${key}.yaml` });
      expect(told.text).toContain('•••');
      expect(told.text).not.toContain(key);
    } finally {
      await reader.close();
      await keyed.close();
    }
  });

  it('is only shown things where the server only shows', async () => {
    const only = await openRig({ readOnly: true });
    const reader = await agentOverHttp(only.addresses.base, only.addresses.agent);
    try {
      expect((await reader.call('look')).failed).toBe(false);
      const up = await reader.call('up', { recipe: 'recipe.yaml', plan: 'abcd' });
      expect(up.failed).toBe(true);
      expect(up.text).toContain('this server only shows');
      expect((await reader.call('restore', { plan: 'abcd' })).text).toContain('this server only shows');
      // A question makes the model work: no such server offers it, and none answers it all the same.
      const { tools } = await reader.client.listTools();
      expect(tools.map(({ name }) => name).sort()).toEqual([...LOOKS, ...CHANGES].sort());
      const chat = await reader.call('chat', { prompt: 'What is 12 times 17?' });
      expect(chat.failed).toBe(true);
      expect(chat.text).toContain('Tool chat not found');
    } finally {
      await reader.close();
      await only.close();
    }
  });

  it('begins anew for a session that it does not know, and takes no agent without its token', async () => {
    await expect(agentOverHttp(rig.addresses.base, 'A'.repeat(43))).rejects.toThrow();
    await expect(agentOverHttp(rig.addresses.base, rig.addresses.write ?? '')).rejects.toThrow();
    const stale = await rig.ask({
      method: 'POST',
      path: '/mcp',
      headers: {
        Authorization: `Bearer ${rig.addresses.agent}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'Mcp-Session-Id': '00000000-0000-4000-8000-000000000000',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    });
    expect(stale.status).toBe(404);
  });
});
