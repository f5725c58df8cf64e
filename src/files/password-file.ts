import { UserError } from '../domain/user-error.ts';
import { readText } from './read-text.ts';

/**
 * The one line of a password file, without its line end. The file must be a regular file of mode 0600 or stricter.
 * Throws a UserError `bad-password-file`; no message ever holds any of the content.
 */
export function readPasswordFile(path: string): string {
  const text = readText(path, {
    code: 'bad-password-file',
    what: 'password file',
    absent: 'Write the password into a file of mode 0600 and name it.',
    limitBytes: 4096,
    forbiddenMode: 0o7177,
  });
  const line = text.replace(/\r?\n$/, '');
  if (line === '')
    throw new UserError('bad-password-file', `${path} is empty`, 'It must hold the password, on one line.');
  if (/[\r\n]/.test(line))
    throw new UserError(
      'bad-password-file',
      `${path} holds more than one line`,
      'It must hold the password alone.',
    );
  return line;
}
