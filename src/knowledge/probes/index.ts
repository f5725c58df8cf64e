import { type Fact, known, type ModelFacts, type ReachedFacts, valueIf } from '../../domain/facts.ts';
import type { LookRequest, Probe, ProbeOutput } from '../../domain/probe.ts';
import { type EngineName, softwareOf } from '../../domain/recipe.ts';
import { endedContainersProbe, kernelLogProbe, parseAfterwards } from './afterwards.ts';
import { assign } from './assign.ts';
import { containersProbe, parseContainers, plainContainer } from './containers.ts';
import { disksProbe, parseDisks } from './disks.ts';
import { askedImages, askedPrograms, enginesProbe, parseEngines } from './engines.ts';
import { gpusProbe, parseGpuLook } from './gpus.ts';
import { holdersFrom } from './holders.ts';
import { hostProbe, parseHost } from './host.ts';
import { interfacesProbe, parseInterfaces } from './interfaces.ts';
import { meminfoProbe, parseMeminfo } from './meminfo.ts';
import { modelFolderProbe, parseModelFolder } from './model-folder.ts';
import { modelHeadersProbe, parseModelHeaders } from './model-headers.ts';
import { ownNameProbe, parseOwnName } from './own-name.ts';
import { ownRecordsProbe, parseOwnRecords } from './own-records.ts';
import { parsePorts, plainPort } from './ports.ts';
import { readProcesses } from './process-reading.ts';
import { processesProbe } from './processes.ts';
import { parseRdma, rdmaProbe } from './rdma.ts';
import { parseSudo, sudoProbe } from './sudo.ts';

/** What one look asks of a host. All of them fit into one round trip; each stands alone. */
export function probesFor(request: LookRequest): Probe[] {
  if (request.memoryOnly === true)
    return [
      hostProbe,
      meminfoProbe,
      gpusProbe,
      processesProbe,
      containersProbe,
      ...(request.sudo === undefined ? [sudoProbe] : []),
      ownRecordsProbe,
    ];
  return [
    hostProbe,
    ownNameProbe,
    meminfoProbe,
    gpusProbe,
    processesProbe,
    containersProbe,
    interfacesProbe,
    rdmaProbe,
    disksProbe,
    ...(request.modelPath === undefined ? [] : [modelFolderProbe]),
    ...(asksHeaders(request) ? [modelHeadersProbe] : []),
    ...(askedImages(request).length + askedPrograms(request).length > 0 ? [enginesProbe] : []),
    sudoProbe,
    ownRecordsProbe,
    ...(request.sinceSeconds === undefined ? [] : [kernelLogProbe, endedContainersProbe]),
  ];
}

/** The Python package whose version is the program's. */
function packageOf(engine: EngineName, program: string): string {
  return /(?:^|\/)ray$/.test(program) ? 'ray' : softwareOf(engine);
}

/** sh text that sets the variables which the probes of this request read. */
export function probeHeader(request: LookRequest): string {
  return [
    assign('FL_RUNTIME', request.runtime ?? 'docker'),
    assign('FL_SINCE_SECONDS', String(Math.ceil(request.sinceSeconds ?? 0))),
    assign('FL_MODEL', request.modelPath ?? ''),
    assign('FL_PEERS', askedPeers(request).join('\n')),
    assign(
      'FL_IMAGES',
      askedImages(request)
        .map(({ image }) => image)
        .join('\n'),
    ),
    assign(
      'FL_PROGRAMS',
      askedPrograms(request)
        .map(({ engine, program }) => `${packageOf(engine, program)} ${program}`)
        .join('\n'),
    ),
  ].join('');
}

function askedPeers(request: LookRequest): readonly string[] {
  return request.peers.map(({ address }) => address).filter((address) => /^[0-9a-fA-F.:]+$/.test(address));
}

/** Outputs of the probes by name → all that was seen on one node; what is missing is unknown with its reason. */
export function assembleFacts(input: {
  readonly node: string;
  readonly at: string;
  readonly milliseconds: number;
  readonly outputs: ReadonlyMap<string, ProbeOutput>;
  readonly request: LookRequest;
  readonly clockOffsetSeconds: Fact<number>;
}): ReachedFacts {
  const { outputs, request } = input;
  const of = (probe: Probe) => outputs.get(probe.name);
  const containers = parseContainers(of(containersProbe));
  const ports = parsePorts(of(processesProbe));
  const sudo = request.sudo ?? parseSudo(of(sudoProbe));
  const look = parseGpuLook(of(gpusProbe));
  const running = (valueIf(containers) ?? [])
    .filter(({ state }) => state === 'running')
    .map(({ name }) => name);
  const own = parseOwnRecords(of(ownRecordsProbe), new Set(running));
  return {
    node: input.node,
    at: input.at,
    reached: true,
    milliseconds: input.milliseconds,
    host: parseHost(of(hostProbe), parseOwnName(of(ownNameProbe))),
    clockOffsetSeconds: input.clockOffsetSeconds,
    memory: parseMeminfo(of(meminfoProbe)),
    ...look,
    holders: holdersFrom({
      processes: readProcesses(of(processesProbe)),
      containers,
      ports,
      runners: valueIf(own)?.runners ?? new Map(),
      rootToBeHad: sudo.known && sudo.value !== 'none',
      unified: (valueIf(look.gpus) ?? look.driver.trouble?.seen ?? []).some((gpu) => gpu.unified),
    }),
    containers: map(containers, (list) => list.map(plainContainer)),
    ports: map(ports, (list) => list.map(plainPort)),
    interfaces: parseInterfaces(of(interfacesProbe), request.peers),
    rdma: parseRdma(of(rdmaProbe)),
    disks: parseDisks(of(disksProbe), request.modelPath),
    ...(request.modelPath === undefined
      ? {}
      : { model: modelOf(outputs, request.modelPath, asksHeaders(request)) }),
    engines:
      outputs.has(enginesProbe.name) || askedImages(request).length + askedPrograms(request).length > 0
        ? parseEngines(of(enginesProbe), request)
        : known([]),
    sudo,
    ranks: map(own, ({ ranks }) => ranks),
    owed: map(own, ({ owed }) => owed),
    lock: own.known ? own.value.lock : own,
    ...afterwardsOf(outputs, request),
  };
}

function afterwardsOf(
  outputs: ReadonlyMap<string, ProbeOutput>,
  { sinceSeconds }: LookRequest,
): Pick<ReachedFacts, 'afterwards'> {
  const afterwards = parseAfterwards(outputs, sinceSeconds !== undefined);
  return afterwards === undefined ? {} : { afterwards };
}

function asksHeaders(request: LookRequest): boolean {
  return request.modelPath !== undefined && request.modelHeaders === true;
}

function modelOf(
  outputs: ReadonlyMap<string, ProbeOutput>,
  path: string,
  headers: boolean,
): Fact<ModelFacts> {
  const model = parseModelFolder(outputs.get(modelFolderProbe.name), path);
  if (!headers || !model.known || !model.value.present) return model;
  return known({ ...model.value, tensors: parseModelHeaders(outputs.get(modelHeadersProbe.name)) });
}

function map<From, To>(fact: Fact<From>, change: (value: From) => To): Fact<To> {
  return fact.known ? known(change(fact.value)) : fact;
}
