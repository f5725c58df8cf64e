import type { Socket } from 'node:net';
import { signalNamed } from './exit-code.ts';
import { baseName, NOTHING } from './holders.ts';
import type { LabHost } from './lab-host.ts';
import type { Listener } from './network-table.ts';
import type { LabReply } from './protocol.ts';
import { environmentOf } from './real-process.ts';
import { type Hello, type Request, request } from './request.ts';
import { tools } from './tools/index.ts';
import type { ToolAnswer } from './tools/tool.ts';
import { cgroupOf, containerAbove, resolve } from './whereabouts.ts';
import type { LabWorld } from './world.ts';

/** Of a host's memory: the weights of a story alone take less, a rank with its KV cache takes more. */
const POOLED_SHARE = 0.7;
/** How many times longer a file takes to be read from a disk that somebody else keeps busy. */
const BUSY_DISK = 400;
const ENGINES = new Set(['sglang', 'vllm', 'ray', 'python3', 'python']);

/** One process of the lab, from its hello to its end. */
export class Connection {
  readonly #socket: Socket;
  readonly #token: string;
  readonly #world: () => LabWorld;
  readonly #gone = new AbortController();
  readonly #listeners: Listener[] = [];
  readonly #onSignal: ((name: NodeJS.Signals) => void)[] = [];
  #hello: Hello | undefined;
  #rest = '';
  /** It holds memory in its own name: its end is the connection's end. */
  #held = false;

  constructor(socket: Socket, token: string, world: () => LabWorld) {
    this.#socket = socket;
    this.#token = token;
    this.#world = world;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.#take(text));
  }

  end(): void {
    this.#gone.abort();
    const hello = this.#hello;
    if (hello === undefined) return;
    for (const listener of this.#listeners) this.#world().network.forget(listener);
    if (this.#held) this.#host(hello).processes.gone(hello.pid, null, null);
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const parsed = request.safeParse(parseJson(line));
      if (!parsed.success) this.#refuse('EPERM', 'this is no request of the lab');
      else this.#answer(parsed.data);
    }
  }

  #answer(asked: Request): void {
    if (asked.op === 'hello') {
      const known = this.#world().hosts.some(({ name }) => name === asked.host);
      if (asked.token !== this.#token || !known) {
        this.#refuse('EPERM', 'the lab does not know this process');
        this.#socket.end();
        return;
      }
      this.#hello = asked;
      const host = this.#host(asked);
      // In a container the rank began with the container; a plain process begins here.
      if (ENGINES.has(baseName(asked.argv[0] ?? '')) && containerAbove(host, asked.pid) === undefined) {
        host.sees('rank-started');
      }
      this.#reply({ ok: true });
      return;
    }
    const hello = this.#hello;
    if (hello === undefined) {
      this.#refuse('EPERM', 'hello comes first');
      return;
    }
    const host = this.#host(hello);
    const { network } = this.#world();
    switch (asked.op) {
      case 'tool':
        this.#tool(host, hello, asked);
        return;
      case 'signal':
        for (const listener of this.#onSignal) listener(signalNamed(asked.signal));
        return;
      case 'holder':
        this.#holder(host, hello);
        return;
      case 'hold':
        this.#hold(host, hello, asked.bytes, asked.gpu);
        return;
      case 'stage':
        if (host.kernel.stage(hello.pid, asked.bytes, asked.program)) this.#reply({ ok: true });
        else this.#refuse('out-of-memory', `${asked.bytes} bytes are not to be had`);
        return;
      case 'memory': {
        const { totalBytes, freeBytes, availableBytes } = host.ledger.snapshot;
        this.#reply({ ok: true, totalBytes, freeBytes, availableBytes, unified: true });
        return;
      }
      case 'read-files':
        host.ledger.warm(asked.bytes);
        host.sees('loading');
        this.#reply({ ok: true, slowed: host.diskBusy ? BUSY_DISK : 1 });
        return;
      case 'ask-hub':
        if (host.hub === 'rate-limits') this.#reply({ ok: true, status: 429 });
        else this.#refuse('EHOSTUNREACH', 'huggingface.co: Temporary failure in name resolution');
        return;
      case 'asked':
        host.sees('asked');
        this.#reply({ ok: true });
        return;
      case 'resolve': {
        const addresses = resolve(this.#world(), host, asked.name);
        if (addresses.length > 0) this.#reply({ ok: true, addresses });
        else this.#refuse('ENOENT', `${asked.name}: Name or service not known`);
        return;
      }
      case 'interface': {
        const found = host.interfaces.find(({ name }) => name === asked.name);
        if (found?.address !== undefined) this.#reply({ ok: true, addresses: [found.address] });
        else this.#refuse('ENOENT', `no address on ${asked.name}`);
        return;
      }
      case 'route': {
        const { defaultInterface: route } = host;
        if (route?.address !== undefined) this.#reply({ ok: true, addresses: [route.address] });
        else this.#refuse('ENOENT', 'no default route');
        return;
      }
      case 'listen': {
        const listener = network.listen({
          host: host.name,
          address: asked.address,
          port: asked.port,
          realPort: asked.realPort,
          pid: hello.pid,
          program: (host.processes.find(hello.pid)?.comm ?? hello.argv[0] ?? '').slice(0, 15),
          uid: hello.uid === '0' ? 0 : 1000,
        });
        if (typeof listener === 'string') {
          this.#refuse(listener, `${asked.address}:${asked.port}`);
          return;
        }
        this.#listeners.push(listener);
        this.#reply({ ok: true, port: listener.port, realPort: listener.realPort });
        return;
      }
      case 'dial': {
        const found = network.find(host.name, asked.address, asked.port);
        if (typeof found === 'string') this.#refuse(found, `${asked.address}:${asked.port}`);
        else this.#reply({ ok: true, port: asked.port, realPort: found.realPort });
      }
    }
  }

  #hold(host: LabHost, hello: Hello, bytes: number, gpu: boolean): void {
    const container = containerAbove(host, hello.pid);
    if (gpu && container?.spec.gpus === false) {
      this.#refuse('EPERM', 'this container was given no GPU');
      return;
    }
    // What has the device open keeps it.
    if (gpu && container !== undefined && host.lostGpu(container) && !this.#held) {
      this.#refuse('gpu-lost', 'the device rules of this container no longer name the GPU');
      return;
    }
    if (host.processes.find(hello.pid) === undefined) {
      host.processes.adopt(
        hello.pid,
        {
          ...NOTHING,
          argv: hello.argv,
          comm: baseName(hello.argv[0] ?? 'python3'),
          user: hello.uid === '0' ? 'root' : host.user,
          uid: hello.uid === '0' ? 0 : 1000,
          cgroup: cgroupOf(host, hello.pid),
          cwd: host.root,
          env: environmentOf(hello.pid) ?? {},
        },
        () => undefined,
      );
    }
    this.#held = true;
    if (host.processes.hold(hello.pid, bytes, gpu)) {
      this.#reply({ ok: true });
      if (gpu && bytes > POOLED_SHARE * host.ledger.snapshot.totalBytes) host.sees('pooled');
    } else {
      const refuse = (): void => this.#refuse('out-of-memory', `${bytes} bytes are not to be had`);
      if (gpu) host.kernel.driverGotNothing();
      if (gpu) host.sees('no-memory');
      if (gpu && host.starvesSeconds > 0) this.#starve(host, refuse);
      else refuse();
    }
  }

  /** The whole host stands still before the driver gives up: who is logged in is cut off, and nobody gets in. */
  #starve(host: LabHost, then: () => void): void {
    const ssh = this.#world().ssh.get(host.name);
    host.kernel.starves();
    ssh?.fail('wedged');
    ssh?.dropConnections();
    setTimeout(() => {
      ssh?.fail('none');
      then();
    }, host.starvesSeconds * 1000).unref();
  }

  #holder(host: LabHost, hello: Hello): void {
    const env = environmentOf(hello.pid) ?? {};
    const uid = hello.uid === '' ? 1000 : Number(hello.uid);
    const program = { argv: hello.argv, cwd: env['PWD'] ?? host.root, uid };
    if (host.holders.adopt(hello.pid, program, env))
      this.#reply({ ok: true, stdout: '', stderr: '', code: 0 });
    else this.#refuse('ENOENT', `${hello.argv[0] ?? ''}: no such program`);
  }

  #tool(host: LabHost, hello: Hello, asked: Extract<Request, { op: 'tool' }>): void {
    const tool = tools[asked.tool];
    if (tool === undefined) {
      this.#reply({ ok: true, stdout: '', stderr: `${asked.tool}: not found\n`, code: 127 });
      return;
    }
    Promise.resolve()
      .then(() =>
        tool({
          host,
          argv: asked.argv,
          env: asked.env,
          uid: hello.uid === '' ? 1000 : Number(hello.uid),
          pid: hello.pid,
          ppid: hello.ppid,
          cwd: asked.cwd ?? host.root,
          input: asked.stdin,
          inputEnded: asked.stdinEnded === true,
          print: (stream, text) => this.#reply({ ok: true, stream, text }),
          onSignal: (listener) => this.#onSignal.push(listener),
          gone: this.#gone.signal,
        }),
      )
      .then(
        (answer) => this.#reply(toReply(answer)),
        (error: unknown) =>
          this.#reply({
            ok: true,
            stdout: '',
            stderr: `${asked.tool}: firstlight lab stand-in: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
            code: 70,
          }),
      );
  }

  #host(hello: Hello): LabHost {
    return this.#world().host(hello.host);
  }

  #reply(reply: LabReply): void {
    if (this.#socket.writable) this.#socket.write(`${JSON.stringify(reply)}\n`);
  }

  #refuse(error: Extract<LabReply, { ok: false }>['error'], text: string): void {
    this.#reply({ ok: false, error, text });
  }
}

function toReply(answer: ToolAnswer): LabReply {
  return { ok: true, ...answer };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the schema refuses it.
    return undefined;
  }
}
