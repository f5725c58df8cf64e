import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** A clock that is far off makes every certificate seem invalid. */
export const clockSkew = lineSignature({
  name: 'clock-skew',
  cause: 'clock-skew',
  seenOn: 'docker 29, OpenSSL 3, curl 8, apt 2.7, GNU make 4',
  source: 'Go crypto/x509; OpenSSL x509_txt.c; apt; make; chrony',
  forms: [
    pattern(
      ['is not yet valid', 'not yet valid'],
      /(?:certificate|x509|SSL|Signature|token)\b.{0,600}(?:has expired or )?is not yet valid(?:: current time (?<now>\S{1,300}) is before (?<from>\S{1,300}))?|not yet valid/,
    ),
    pattern(
      ['certificate has expired'],
      /certificate has expired(?: or is not yet valid: current time (?<now>\S{1,300}) is after (?<to>\S{1,300}))?(?!.{0,600}is before)/,
    ),
    pattern(
      [
        'Clock skew',
        'clock skew',
        'in the future',
        'RequestTimeTooSkewed',
        'Release file',
        'System clock wrong',
      ],
      /[Cc]lock skew (?:detected|too great|is too)|modification time .{0,600} in the future|RequestTimeTooSkewed|Release file .{0,600} is not valid yet|System clock wrong by/,
    ),
  ],
  title: ({ groups }, where) =>
    `The clock of ${where} is wrong${groups['now'] ? `: it says ${groups['now']}` : ''}`,
  why: ({ groups, message }) =>
    groups['from'] !== undefined
      ? `A certificate that is valid from ${groups['from']} on is not valid yet for it, so nothing can be fetched.`
      : /expired/.test(message)
        ? 'A certificate seems to have expired; where it has not, the clock is ahead.'
        : 'Times that others wrote lie in its future.',
  advice: (_found, where) => [
    `On ${where}: timedatectl; date -u`,
    `On ${where}: sudo timedatectl set-ntp true; it has worked when timedatectl says "System clock synchronized: yes", and date -u is the same on all nodes`,
  ],
  confidence: ({ message }) => (/expired(?! or)/.test(message) && !/is before/.test(message) ? 0.55 : 0.92),
  specificity: 3,
  looks: [
    'tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2024-01-01T00:03:12Z is before 2026-02-14T00:00:00Z',
  ],
});
