import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** The folder to copy into does not exist: rsync and scp make the last part of a path only. */
export const destinationMissing = lineSignature({
  name: 'destination-missing',
  cause: 'destination-directory-missing',
  seenOn: 'rsync 3.1 to 3.4, OpenSSH 8 to 10, coreutils 9, GNU tar',
  source: 'rsync main.c and receiver.c; OpenSSH scp.c and sftp-client.c; coreutils',
  forms: [
    pattern(
      ['] mkdir "', 'rsync: mkdir "', 'rsync: [', 'change_dir', 'mkstemp'],
      /rsync:? ?(?:\[?[Rr]eceiver[^\]]{0,400}\] ?)?(?:mkdir|change_dir#\d|mkstemp|open|rename) "(?<path>[^"]{1,400})"(?:\.\.\.)? failed: No such file or directory/,
    ),
    pattern(
      ['scp: ', 'sftp: '],
      /(?:scp|sftp): (?:(?:dest open|remote open|realpath|stat remote|upload|mkdir|open)? ?"?(?<path>\/[^":]{0,400})"?): No such file or directory/,
    ),
    pattern(
      ['cannot create ', 'Cannot open: No such file', 'Cannot chdir', 'failed to open', 'target directory'],
      /(?:cp|mv|install|ln|mkdir|tee|touch|dd): (?:cannot (?:create|stat|touch|open) (?:regular file |directory |symbolic link |hard link )?|failed to (?:open|access) |target directory )?['‘"]?(?<path>\/[^'’":]{1,400})['’"]?.{0,600}No such file or directory|tar: (?<chdir>\S{1,300}): Cannot (?:open|chdir|mkdir): No such file/,
    ),
    pattern(
      'No such file or directory',
      /^(?:\S{0,300}(?:bash|sh|zsh): )(?:line )?(?:\d+: )?(?:cannot create )?(?<path>\/[^:]{0,400}\/[^:/]{1,400}\.(?:safetensors|tar|log|part|json|gz|zst|incomplete)): (?:No such file or directory|Directory nonexistent)/,
    ),
  ],
  unless: [],
  counts: ({ message }) => !/\[[Ss]ender\]|link_stat|cannot stat/.test(message),
  title: ({ groups }, where) =>
    `The copy from ${where} has no folder to go into: ${groups['path'] ?? groups['chdir'] ?? 'its parent does not exist'}`,
  why: 'rsync and scp create the last part of a path and no more; its parent is not there on the receiving node.',
  advice: ({ groups }) => [
    `On the receiving node: mkdir -p ${groups['path'] ?? groups['chdir'] ?? 'THE_FOLDER'}; or give rsync --mkpath`,
    'See that the path of the cache is the one that this node uses: HF_HOME may differ between nodes.',
  ],
  confidence: 0.93,
  specificity: 3,
  looks: ['rsync: [Receiver] mkdir "/raid/cache/hub" failed: No such file or directory (2)'],
});
