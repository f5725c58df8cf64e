import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

const CR = String.raw`(?:\\r|\^M|\\015)`;

/** A file of variables, or a script, was saved with Windows' line ends or with a byte order mark. */
export const envFile = lineSignature({
  name: 'env-file',
  cause: 'env-file-crlf-or-bom',
  seenOn: 'docker 20 to 29, docker compose 2, bash 5, dash, Python 3',
  source: 'docker cli opts/envfile; compose-go dotenv; bash; Python repr',
  forms: [
    pattern(
      [
        "$'\\r'",
        "'\\r': command not found",
        '^M: bad interpreter',
        '\\r: No such file',
        "\\r': No such file",
      ],
      /\$?'\\r'?: command not found|\$'[^']{0,400}\\r': (?:command not found|No such file)|\^M: bad interpreter|\\r['’]?: No such file or directory/,
    ),
    pattern(
      [
        'unexpected character',
        'poorly formatted environment',
        'invalid environment variable',
        'variable name near',
      ],
      /unexpected character "(?:\\ufeff|\\r|\\u00ef|\\xef|»|\ufeff)" in variable name|poorly formatted environment.{0,600}(?:\\ufeff|\ufeff|\\r|contains whitespaces)|invalid (?:environment )?variable (?:name )?.{0,600}(?:\\ufeff|\ufeff|\\r)/,
    ),
    pattern(
      ['\\r', '^M', '\\015'],
      new RegExp(
        `(?:invalid (?:int|float|choice|literal|reference|port|value)|could not convert|Repo id must|No such file or directory|resolve hostname|Name or service not known|does not exist|not a valid|unrecognized arguments|Unable to find address|no such interface|Invalid|unknown).{0,600}${CR}['"’]?|['"’][^'"’]{1,200}${CR}['"’].{0,600}(?:invalid|not found|unknown|No such|does not exist|not a valid)`,
      ),
    ),
    pattern(
      ['\\ufeff', 'ufeff', '\\xef\\xbb\\xbf', '\\357\\273\\277', 'U+FEFF'],
      /\\ufeff|\\xef\\xbb\\xbf|\\357\\273\\277|U\+FEFF/,
    ),
    pattern(['command not found', 'not found'], /\ufeff[\w=./'-]{0,400}: (?:command )?not found/),
  ],
  // SGLang and vLLM print stop words and templates in which "\r" is meant.
  counts: ({ message }) => !/chat_template|non-default args|server_args|eos|stop=|escape/.test(message),
  title: (found) =>
    /ufeff|\ufeff|xef|357|FEFF/.test(found.message)
      ? 'A file of variables begins with a byte order mark'
      : 'A file of variables, or a script, has the line ends of Windows',
  why: (found) =>
    /ufeff|\ufeff|xef|357|FEFF/.test(found.message)
      ? 'An editor put an invisible mark before the first name, so that name is another one.'
      : 'A carriage return stands at the end of each value and belongs to it: a number is no number, a path leads nowhere.',
  advice: () => [
    "Find it: file .env *.sh; grep -l $'\\r' .env *.sh",
    "Mend it: sed -i '1s/^\\xef\\xbb\\xbf//; s/\\r$//' FILE; it has worked when file FILE says neither CRLF nor BOM",
  ],
  confidence: 0.9,
  specificity: 3,
  looks: ["/srv/stack/start.sh: line 3: $'\\r': command not found"],
});
