const SECRET_NAME = String.raw`(?:[\w.-]*[-_.])?(?:api[-_]?keys?|(?:access|auth|master|private|signing|wandb)[-_]?key|secret(?:[-_]?key)?|token|jwt|passw(?:or)?d|pwd|passphrase|requirepass|masterauth|credentials?|auth)`;
const ASSIGNED = new RegExp(String.raw`^(-{0,2}${SECRET_NAME})=(.+)$`, 'is');
const OPTION = new RegExp(String.raw`^--?${SECRET_NAME}$`, 'i');
/** vLLM takes several keys after the one flag. */
const SEVERAL = /^--?(?:[\w.-]*[-_.])?api[-_]?keys?$/i;
/** `{"api_key": "abc"}`, as configurations are handed on. */
const IN_JSON = new RegExp(
  String.raw`(["']${SECRET_NAME}["']\s*:\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,}\]]+)`,
  'gi',
);
/** The same inside one argument: `sh -c "vllm serve --api-key abc"`. */
const WITHIN = new RegExp(
  String.raw`((?:^|[\s"'])-{0,2}${SECRET_NAME}(?:=|\s+(?!-)))("[^"]*"|'[^']*'|[^\s"']+)`,
  'gi',
);

const FORMS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, '$1 ***'],
  [/\b(hf|ghp|gho|ghs|glpat|nvapi|sk|xox[abp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}\b/g, '$1***'],
  [/\beyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?/g, 'eyJ***'],
  [/(\w+:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:***@'],
];

/** The arguments of a process with the values of keys, tokens and passwords replaced by `***`. */
export function maskSecrets(args: readonly string[]): readonly string[] {
  const curl = /(?:^|\/)curl$/.test(args[0] ?? '');
  let several = false;
  return args.map((arg, at) => {
    const before = args[at - 1];
    several = SEVERAL.test(before ?? '') || (several && !arg.startsWith('-'));
    if (several && !arg.startsWith('--')) return '***';
    if (before !== undefined && OPTION.test(before) && !arg.startsWith('--')) return '***';
    if (curl && (before === '-u' || before === '--user')) return arg.replace(/:.*/s, ':***');
    const assigned = ASSIGNED.exec(arg);
    if (assigned) return `${assigned[1]}=***`;
    let text = arg.replace(IN_JSON, '$1"***"').replace(WITHIN, '$1***');
    for (const [form, put] of FORMS) text = text.replace(form, put);
    return text;
  });
}
