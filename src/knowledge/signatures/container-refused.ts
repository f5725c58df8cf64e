import { plainSignature } from './plain-signature.ts';
import { pattern } from './signature.ts';

/** The image is for another processor. */
export const imageArchitecture = plainSignature({
  name: 'image-architecture',
  cause: 'image-wrong-architecture',
  seenOn: 'docker 28 on GB10',
  source: 'runc; kernel binfmt',
  forms: [pattern(['xec format error'], /[Ee]xec format error/)],
  title: (found) => `The image on ${found.node} is built for another processor`,
  why: 'The kernel refused to run its program: exec format error.',
  advice: (found) => [
    `On ${found.node}: uname -m; docker image inspect --format '{{.Architecture}}' IMAGE`,
    'Use an arm64 image on a Spark.',
  ],
  confidence: 0.95,
  specificity: 3,
});

/** The user may not talk to docker. */
export const dockerGroup = plainSignature({
  name: 'docker-group',
  cause: 'docker-group-missing',
  seenOn: 'docker 24 to 28',
  source: 'docker cli',
  forms: [
    pattern(
      'permission denied while trying to connect to the',
      /permission denied while trying to connect to the [Dd]ocker (?:daemon socket|API)/,
    ),
  ],
  title: (found) => `The user may not use docker on ${found.node}`,
  why: 'It is not in the group docker there, or its session is older than its membership.',
  advice: (found) => [`On ${found.node}: sudo usermod -aG docker "$USER", and log in anew`],
  confidence: 0.96,
  specificity: 3,
});

/** No slug of the closed list is for this: the plan finds a missing image before the launch. */
export const imageMissing = plainSignature({
  name: 'image-missing',
  cause: 'unknown',
  seenOn: 'docker 24 to 28',
  source: 'docker cli',
  forms: [
    pattern(
      ['No such image', 'pull access denied for', 'Unable to find image'],
      /No such image: (?<image>[\w./:@-]+)|pull access denied for (?<repository>[\w./:@-]+),|Unable to find image '(?<wanted>[\w./:@-]+)' locally/,
    ),
  ],
  title: (found) =>
    `${found.node} does not have the image ${found.groups['image'] ?? found.groups['repository'] ?? found.groups['wanted'] ?? ''}`,
  why: 'Images are never pulled without being asked for.',
  advice: (found) => [
    `On ${found.node}: docker pull ${found.groups['image'] ?? found.groups['wanted'] ?? 'IMAGE'}`,
  ],
  confidence: 0.8,
  specificity: 3,
});

/** A Python package or a program that the image lacks. Import notes that engines print in passing are not meant. */
export const packageMissing = plainSignature({
  name: 'package-missing',
  cause: 'package-missing-in-image',
  seenOn: 'Python 3.10 to 3.13',
  source: "Python's import machinery; dash",
  forms: [
    pattern(
      ['ModuleNotFoundError: No module named'],
      /^(?:\[rank\d+\]: ?)?ModuleNotFoundError: No module named '(?<package>(?!transformers_modules)[\w.]+)'/,
    ),
    pattern(
      ['not found', 'No such file or directory'],
      /^(?:(?:bash|sh|\/\S*sh): (?:line )?\d*:? ?|exec: )"?(?<program>[\w./-]*(?:vllm|sglang|python3?|rsync|ray))"?: (?:command )?(?:not found|No such file or directory|executable file not found in \$PATH)/,
    ),
    // dockerd and runc, where the container's own program is not in the image.
    pattern(
      ['executable file not found in $PATH'],
      /^(?:docker: )?Error response from daemon: .*\bexec: "(?<program>[^"]+)": executable file not found in \$PATH/,
    ),
  ],
  title: (found) =>
    `${found.groups['package'] ?? found.groups['program'] ?? 'A package'} is not installed where the rank runs on ${found.node}`,
  why: 'The engine cannot run without it.',
  advice: () => ['Use an image that has it, or correct run.command or run.venv in the recipe.'],
  confidence: 0.8,
  specificity: 2,
});

/** A cache folder that root made. */
export const cacheNotWritable = plainSignature({
  name: 'cache-not-writable',
  cause: 'cache-directory-not-writable',
  seenOn: 'vLLM image of September 2026',
  source: "Python's OSError",
  forms: [
    pattern(
      'PermissionError: [Errno 13] Permission denied: ',
      /PermissionError: \[Errno 13\] Permission denied: '(?<path>\/[^']*(?:cache|\.triton|\.flashinfer)[^']*)'/,
    ),
  ],
  title: (found) => `The rank on ${found.node} may not write ${found.groups['path'] ?? 'its cache'}`,
  why: 'The folder belongs to another user, as when docker made it as root for a mount.',
  advice: (found) => [
    `On ${found.node}: sudo chown -R "$(id -u):$(id -g)" '${(found.groups['path'] ?? '').replace(/\/[^/]*$/, '')}'`,
  ],
  confidence: 0.85,
  specificity: 3,
});
