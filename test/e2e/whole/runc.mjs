#!/srv/bin/node
// runc on a machine whose root lacks CAP_SYS_RESOURCE: what nobody can grant there (limits above its own, more
// capabilities, a lower OOM score) is taken down to what can be, and the real runc runs the rest unchanged.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const REAL = existsSync('/usr/sbin/runc') ? '/usr/sbin/runc' : '/usr/bin/runc';
const args = process.argv.slice(2);
const at = args.findIndex((word) => word === '--bundle' || word === '-b' || word.startsWith('--bundle='));
const bundle = at < 0 ? '.' : args[at].startsWith('--bundle=') ? args[at].slice(9) : args[at + 1];
const ofProcess = args.findIndex((word) => word === '--process' || word === '-p');

if (args.includes('create') || args.includes('run')) edit(`${bundle}/config.json`, (spec) => spec.process);
else if (args.includes('exec') && ofProcess >= 0) edit(args[ofProcess + 1], (spec) => spec);
const { status, signal } = spawnSync(REAL, args, { stdio: 'inherit' });
process.exit(signal === null ? (status ?? 1) : 1);

function edit(file, pick) {
  const spec = JSON.parse(readFileSync(file, 'utf8'));
  const wanted = pick(spec);
  const bound = BigInt(`0x${/^CapBnd:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]}`);
  const lacks = ['CAP_SYS_RESOURCE', 'CAP_SYS_TIME', 'CAP_SYS_MODULE', 'CAP_SYSLOG'];
  for (const names of Object.values(wanted.capabilities ?? {}))
    if (Array.isArray(names)) names.splice(0, names.length, ...names.filter((name) => !lacks.includes(name)));
  const resource = (bound >> 24n) & 1n;
  if (resource === 1n) return writeFileSync(file, JSON.stringify(spec));
  const limits = execFileSync('sh', ['-c', 'cat /proc/$$/limits'], { encoding: 'utf8' });
  const hard = (name) => {
    const word = new RegExp(`^Max ${name}\\s+\\S+\\s+(\\S+)`, 'm').exec(limits)?.[1] ?? 'unlimited';
    return word === 'unlimited' ? Infinity : Number(word);
  };
  const NAMES = {
    RLIMIT_NOFILE: 'open files',
    RLIMIT_NPROC: 'processes',
    RLIMIT_MEMLOCK: 'locked memory',
    RLIMIT_STACK: 'stack size',
    RLIMIT_CORE: 'core file size',
  };
  for (const limit of wanted.rlimits ?? []) {
    const most = hard(NAMES[limit.type] ?? limit.type);
    if (most === Infinity) continue;
    limit.hard = Math.min(limit.hard, most);
    limit.soft = Math.min(limit.soft, limit.hard);
  }
  if ((wanted.oomScoreAdj ?? 0) < 0) wanted.oomScoreAdj = 0;
  writeFileSync(file, JSON.stringify(spec));
}
