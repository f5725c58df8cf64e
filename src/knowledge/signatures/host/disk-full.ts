import { lineSignature, type Where, whoSaid } from '../line-signature.ts';
import { peerOf } from '../scene.ts';
import { type Found, pattern, type View } from '../signature.ts';

const sender = pattern('[sender=', /\[sender=[\d.]{1,400}\]/);

const noRoom = pattern(
  ['No space left on device', 'no space left on device', 'os error 28', 'Disk quota exceeded', 'ENOSPC'],
  /(?:No space left on device|Disk quota exceeded|os error 28|ENOSPC)(?::? ?\(?(?:28\)?)?:? ?['"]?(?<path>\/[^'"]{0,400})['"]?)?/i,
);

/** What torch.save says when its write breaks off: the reason itself is lost in C++'s streams. */
const brokeOff = pattern(
  ['basic_ios::clear: iostream error', 'inline_container.cc', 'PytorchStreamWriter failed'],
  /basic_ios::clear: iostream error|inline_container\.cc:\d{1,20}\] ?\.? ?unexpected pos \d{1,20} vs \d{1,20}|PytorchStreamWriter failed writing/,
);

/** A file system has no room left; shared memory has a cause of its own. */
export const diskFull = lineSignature({
  name: 'disk-full',
  cause: 'disk-full',
  seenOn: 'Linux 6, rsync 3.2, docker 29, Ray 2.2 to 2.60, huggingface_hub 0.34, torch 2.13',
  source:
    'Linux errno 28 and 122; torch caffe2/serialize/inline_container.cc; ray file_system_monitor.cc; huggingface_hub file_download.py; sqlite',
  forms: [
    noRoom,
    brokeOff,
    pattern(
      ['file_system_monitor', '% full, available space', 'OutOfDiskError', 'Local disk is full'],
      /(?<path>\/\S{1,300}) is over (?<percent>\d+)% full, available space: (?<free>\d+); capacity: (?<capacity>\d+)|OutOfDiskError|Local disk is full/,
    ),
    pattern(
      [
        'Not enough free disk space',
        'database or disk is full',
        'not enough disk space',
        'nsufficient disk space',
        'Not enough disk space',
      ],
      /(?:[Nn]ot enough|[Ii]nsufficient) (?:free )?disk space(?:.{0,600}expected file size is: (?<wanted>[\d.]{1,400}) MB.{0,600}only has (?<left>[\d.]{1,400}) MB)?|database or disk is full/,
    ),
  ],
  also: [sender],
  slow: true,
  // The hub's warning counts where the write then failed.
  counts: ({ message }, { find }) =>
    (!/Not enough free/.test(message) || find(noRoom).length > 0) &&
    !/would fall below|to avoid|\/dev\/shm|shared memory|shm_|psm_|inotify|\/sys\/|\/proc\//i.test(message),
  at: fullWhere,
  title: ({ groups }, where) =>
    `A disk of ${where} is full${groups['path'] ? `: ${groups['path'].slice(0, 80)}` : ''}`,
  why: ({ groups, message }) =>
    groups['free'] === undefined
      ? `What was to be written did not fit${isVague(message) ? '; torch itself says no more than that its file broke off' : ''}.`
      : `${(Number(groups['free']) / 2 ** 30).toFixed(1)} GiB of ${(Number(groups['capacity']) / 2 ** 30).toFixed(1)} GiB are left there, and Ray refuses objects from ${groups['percent']} % on.`,
  advice: (_found, where) => [
    `On ${where}: df -h; du -xh --max-depth=2 / 2>/dev/null | sort -h | tail -20`,
    'Images and build caches that nobody uses: docker system df, then docker image prune and docker builder prune.',
    'Or move what grows: HF_HOME, TMPDIR, RAY_TMPDIR (ray start --temp-dir) to a larger disk. firstlight check then shows the room.',
  ],
  confidence: ({ message }) => (/% full, available/.test(message) ? 0.72 : isVague(message) ? 0.75 : 0.92),
  specificity: 3,
  looks: ["OSError: [Errno 28] No space left on device: '/models/model-00007-of-00012.safetensors'"],
});

function isVague(message: string): boolean {
  return brokeOff.regex.test(message);
}

/** rsync says on the sender's side what the receiver met. */
function fullWhere(first: Found, all: readonly Found[], view: View): Where {
  const place = whoSaid(first, all, view);
  const far = /\[[Rr]eceiver\]/.test(first.message) && view.find(sender).length > 0;
  const peer = place.node === undefined ? undefined : peerOf(view.evidence, place.node);
  return far && peer !== undefined ? { node: peer } : place;
}
