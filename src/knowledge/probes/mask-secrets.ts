const SECRET_NAME = String.raw`(?:[\w.-]*[-_.])?(?:api[-_]?keys?|apikey|access[-_]?key|secret(?:[-_]?key)?|token|passw(?:or)?d|passphrase|credentials?|auth)`;
const ASSIGNED = new RegExp(String.raw`^(-{0,2}${SECRET_NAME})=(.+)$`, 'is');
const OPTION = new RegExp(String.raw`^--?${SECRET_NAME}$`, 'i');
/** The same inside one argument: `sh -c "vllm serve --api-key abc"`. */
const WITHIN = new RegExp(
  String.raw`((?:^|[\s"'])-{0,2}${SECRET_NAME}(?:=|\s+(?!-)))("[^"]*"|'[^']*'|[^\s"']+)`,
  'gi',
);

const FORMS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, '$1 ***'],
  [/\b(hf|ghp|gho|ghs|glpat|nvapi|sk|xox[abp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}\b/g, '$1***'],
  [/(\w+:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:***@'],
];

/** The arguments of a process with the values of keys, tokens and passwords replaced by `***`. */
export function maskSecrets(args: readonly string[]): readonly string[] {
  return args.map((arg, at) => {
    const before = args[at - 1];
    if (before !== undefined && OPTION.test(before) && !arg.startsWith('--')) return '***';
    const assigned = ASSIGNED.exec(arg);
    if (assigned) return `${assigned[1]}=***`;
    let text = arg.replace(WITHIN, '$1***');
    for (const [form, put] of FORMS) text = text.replace(form, put);
    return text;
  });
}
