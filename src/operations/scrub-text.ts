/** What must not leave with a bundle, beside what every text is searched for. */
export type ToHide = {
  /** Values of secrets. */
  readonly secrets: readonly string[];
  /** People's names as users; `root` is nobody's. */
  readonly users: readonly string[];
  /** Names of hosts, where these are to be hidden too; then addresses are as well. */
  readonly hosts?: readonly string[];
};

const SECRET = '[secret]';

/** Forms of secrets that programs print or take: tokens, keys, passwords in words, addresses and headers. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g, SECRET],
  [
    /\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{16,}|AKIA[A-Z0-9]{16}|glpat-[\w-]{16,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})/g,
    SECRET,
  ],
  [/(\b[Bb]earer\s+|\b[Bb]asic\s+(?=[A-Za-z0-9+/]{12,}))[^\s"',;]+/g, `$1${SECRET}`],
  [/(\/\/[^\s/:@]*:)[^\s/@]+@/g, `$1${SECRET}@`],
  [
    /(\b[\w-]*(?:api[_-]?key|apikey|token|passw(?:or)?d|passphrase|secret)[\w-]*["']?\s*[=:]\s*["']?)(?!\d+\b|None\b|null\b|true\b|false\b|[•[])([^\s"',;)}\]]{4,})/gi,
    `$1${SECRET}`,
  ],
  [/(--(?:api-key|token|hf-token|password)[= ])(?!\[)[^\s"']+/g, `$1${SECRET}`],
  [/[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b(?!:)/g, 'someone@example.invalid'],
];
/** Numbers of tokens are no tokens. */
const COUNTS =
  /\b(?:max_|num_|n_|total_|prompt_|completion_|new_|cached_|output_|input_)?tokens?["']?\s*[=:]\s*[\d.]/i;
const ADDRESS = /\b(?:\d{1,3}\.){3}\d{1,3}\b/g;
const ADDRESS6 = /\b(?:fe80|fd[0-9a-f]{2}|2[0-9a-f]{3})(?::[0-9a-f]{0,4}){2,7}\b/gi;
const HOME = /(\/(?:home|Users)\/)([A-Za-z_][\w.-]*)/g;

/**
 * Makes a function that takes secrets and personal names out of a text. The same name gets the same stand-in all along,
 * and an address keeps its last part and its neighbours, so that what is left still tells the story.
 */
export function scrubber(hide: ToHide): (text: string) => string {
  const users = stand(
    hide.users.filter((name) => name.length > 1 && name !== 'root'),
    'user',
  );
  const hosts = stand(
    (hide.hosts ?? []).filter((name) => name.length > 1),
    'host-',
  );
  const networks = new Map<string, number>();
  const others = new Map<string, string>();
  const address = (text: string): string => {
    if (/^(?:127|0|255|224)\./.test(text)) return text;
    const network = text.slice(0, text.lastIndexOf('.'));
    const number = networks.get(network) ?? networks.size;
    networks.set(network, number);
    return `198.18.${number % 256}${text.slice(text.lastIndexOf('.'))}`;
  };
  const user = (name: string): string => {
    const known = users.get(name);
    if (known !== undefined) return known;
    const made = `user${users.size + 1}`;
    users.set(name, made);
    return made;
  };
  return (text) => {
    let rest = hide.secrets.reduce(
      (left, secret) => (secret.length < 4 ? left : left.replaceAll(secret, SECRET)),
      text,
    );
    for (const [form, stead] of FORMS)
      rest = rest.replace(form, (whole: string, ...groups: readonly unknown[]) => {
        const [first] = groups;
        return COUNTS.test(whole) ? whole : stead.replace('$1', typeof first === 'string' ? first : '');
      });
    rest = rest.replace(HOME, (_whole, root: string, name: string) => `${root}${user(name)}`);
    for (const [name, stead] of users) rest = rest.replace(wordOf(name), stead);
    if (hide.hosts === undefined) return rest;
    for (const [name, stead] of hosts) rest = rest.replace(wordOf(name), stead);
    return rest.replace(ADDRESS, address).replace(ADDRESS6, (one) => {
      const made = others.get(one.toLowerCase()) ?? `2001:db8::${others.size + 1}`;
      others.set(one.toLowerCase(), made);
      return made;
    });
  };
}

/** Stand-ins for names, longer names first: one may stand within another. */
function stand(names: readonly string[], stem: string): Map<string, string> {
  const unique = [...new Set(names)];
  const given = new Map(unique.map((name, index) => [name, `${stem}${index + 1}`]));
  return new Map([...given].toSorted((a, b) => b[0].length - a[0].length));
}

function wordOf(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w])`, 'g');
}
