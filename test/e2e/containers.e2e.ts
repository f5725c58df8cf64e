import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { whyNot } from './fleet.ts';
import { eventOf, outcomeOf, WholeFleet } from './whole/fleet.ts';
import { tell } from './whole/table.ts';

const why = whyNot();
if (why !== undefined && process.env['CI']) throw new Error(`the end-to-end suite must run in CI: ${why}`);

const docker = (image: string) => `  in: docker\n  image: {sglang: "${image}"}\n  volumes: ["/srv:/srv:ro"]`;

describe.skipIf(why !== undefined)('ranks in containers, on whole hosts', () => {
  const fleet = new WholeFleet(3);
  let digest = '';

  beforeAll(() => {
    fleet.up();
    fleet.must('a', 'root', 'docker import /srv/image.tar tiny');
    // The same image, said to be for the other processor.
    fleet.must(
      'a',
      'root',
      `mkdir /tmp/other && cd /tmp/other && docker save tiny | tar x && sed -i 's/"architecture":"amd64"/"architecture":"other"/; s/"architecture":"arm64"/"architecture":"amd64"/; s/"architecture":"other"/"architecture":"arm64"/' *.json && sed -i 's/tiny:latest/tiny:other/' manifest.json && rm -f repositories && tar c . | docker load && cd / && rm -r /tmp/other`,
    );
    // One image on both hosts, as a copy over the fabric makes it.
    fleet.script('pipe', fleet.folder, 'a', 'docker save tiny tiny:other', 'b', 'docker load');
    digest = fleet.must('b', 'root', "docker image inspect -f '{{.Id}}' tiny");
  });

  afterAll(() => fleet.down());

  test('an image that is on no host, and one for another processor, are refused before anything starts', async () => {
    fleet.writeRecipe({ nodes: ['a', 'b'], run: docker('absent:1') });
    const absent = await fleet.firstlight(['check', fleet.file('recipe.yaml')]);
    expect(absent.code, absent.text).toBe(1);
    expect(absent.text).toContain('docker pull absent:1');
    fleet.writeRecipe({ nodes: ['a', 'b'], run: docker('tiny:other') });
    const wrong = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json']);
    expect(wrong.code, wrong.text).toBe(2);
    expect(wrong.text).toMatch(/arm64.*amd64|amd64.*arm64/);
    expect(fleet.must('a', 'root', 'docker ps -aq')).toBe('');
    tell({
      what: 'image for another processor',
      seen: 'look',
      named: 'both processors',
      done: 'refused',
      seconds: wrong.seconds,
    });
  });

  test('docker: named by digest, launched with what Sparks need, and serving', async () => {
    fleet.writeRecipe({ nodes: ['a', 'b'], run: docker(digest) });
    const up = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json'], { seconds: 180 });
    expect(outcomeOf(up), up.text).toBe('serving');
    const form =
      '{{.HostConfig.NetworkMode}} {{.HostConfig.IpcMode}} {{.HostConfig.RestartPolicy.Name}} {{json .HostConfig.Ulimits}} {{json .HostConfig.DeviceRequests}}';
    for (const [rank, host] of [
      [0, 'a'],
      [1, 'b'],
    ] as const) {
      const seen = fleet.must(host, 'root', `docker inspect -f '${form}' firstlight-tiny-r${rank}`);
      expect(seen).toMatch(/^host host no /);
      expect(seen).toContain('"Name":"memlock"');
      expect(seen).toContain('"gpu"');
    }
    tell({
      what: 'ranks in docker',
      seen: 'image by digest',
      named: String(eventOf(up, 'serving')?.['answer']),
      done: 'serving',
      seconds: up.seconds,
    });
  });

  test('docker: a daemon that restarts under the ranks is seen, and one up mends it', async () => {
    fleet.must('b', 'root', 'systemctl restart docker');
    const status = await fleet.firstlight(['status']);
    expect(status.code, status.text).toBe(1);
    expect(status.text).toContain('spark-b');
    const up = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json'], { seconds: 180 });
    expect(outcomeOf(up), up.text).toBe('serving');
    tell({
      what: 'dockerd restarted while serving',
      seen: 'status',
      named: 'spark-b',
      done: 'up again: serving',
      seconds: up.seconds,
    });
  });

  test('docker: down removes the containers and keeps their logs', async () => {
    const down = await fleet.firstlight(['down', '--json']);
    expect(down.code, down.text).toBe(0);
    for (const host of ['a', 'b'] as const) expect(fleet.must(host, 'root', 'docker ps -aq'), host).toBe('');
    expect(fleet.must('b', 'aurora', 'cat ~/.firstlight/*/ranks/tiny-r1/log')).toContain('sglang');
    const logs = await fleet.firstlight(['logs', '--rank', '1']);
    expect(logs.stdout.length, logs.text).toBeGreaterThan(200);
  });

  test('podman, without root: launched, serving, and gone after down', async () => {
    fleet.must('c', 'root', 'loginctl enable-linger aurora');
    fleet.must(
      'c',
      'root',
      `mkdir -p /etc/cdi && printf 'cdiVersion: "0.5.0"\\nkind: nvidia.com/gpu\\ndevices:\\n  - name: all\\n    containerEdits: {env: [NVIDIA_VISIBLE_DEVICES=void]}\\n' >/etc/cdi/nvidia.yaml`,
    );
    fleet.login('c', 'podman import /srv/image.tar localhost/tiny');
    fleet.writeRecipe({
      name: 'pod',
      nodes: ['c'],
      run: docker('localhost/tiny').replace('docker', 'podman'),
    });
    const up = await fleet.firstlight(['up', fleet.file('recipe.yaml'), '--json'], { seconds: 180 });
    expect(outcomeOf(up), up.text).toBe('serving');
    // What it shares with the host is asked of the kernel: podman 4.3 tells of --ipc host as "shareable".
    const pid = fleet
      .login('c', "podman inspect -f 'pid {{.State.Pid}}' firstlight-pod-r0")
      .split('pid ')
      .at(-1);
    for (const kind of ['net', 'ipc'])
      expect(fleet.must('c', 'root', `readlink /proc/${pid}/ns/${kind}`), kind).toBe(
        fleet.must('c', 'root', `readlink /proc/1/ns/${kind}`),
      );
    const status = await fleet.firstlight(['status']);
    expect(status.code, status.text).toBe(0);
    const down = await fleet.firstlight(['down', '--json']);
    expect(down.code, down.text).toBe(0);
    expect(fleet.login('c', 'podman ps -aq')).not.toMatch(/[0-9a-f]{12}/);
    expect(fleet.must('c', 'aurora', 'cat ~/.firstlight/*/ranks/pod-r0/log')).toContain('server_args');
    tell({
      what: 'ranks in podman',
      seen: 'rootless',
      named: String(eventOf(up, 'serving')?.['answer']),
      done: 'serving',
      seconds: up.seconds,
    });
  });
});
