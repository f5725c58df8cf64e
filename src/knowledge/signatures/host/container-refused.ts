import { quotePlainly } from '../../../domain/quote.ts';
import { lineSignature } from '../line-signature.ts';
import { pattern } from '../signature.ts';

/** The image is for another processor. */
export const imageArchitecture = lineSignature({
  name: 'image-architecture',
  cause: 'image-wrong-architecture',
  seenOn: 'docker 20 to 29, podman 4 and 5, on GB10',
  source: 'runc; kernel binfmt_misc; moby and containers/image platform matching; qemu-user',
  forms: [
    pattern(['xec format error'], /[Ee]xec format error/),
    pattern(
      ['no matching manifest for', 'no match for platform in manifest', 'no image found in manifest list'],
      /no matching manifest for (?<platform>[\w/]{1,400})|no match for platform in manifest|no image found in (?:manifest list|image index) for architecture "?(?<architecture>\w{1,80})/,
    ),
    pattern(
      ['qemu: uncaught target signal', "ld-linux-x86-64.so.2'", 'ld-linux-x86-64.so.2:'],
      /qemu: uncaught target signal|qemu-\w{1,80}: Could not open '\S{0,300}ld-linux-x86-64\.so\.2'|ld-linux-x86-64\.so\.2: (?:No such file|cannot)/,
    ),
  ],
  also: [
    pattern(
      ["The requested image's platform (", 'image platform ('],
      /image(?:'s)? platform \((?<image>[\w/]{1,400})\) does not match the (?:detected host|expected) platform \(?(?<host>[\w/]{1,400})/,
    ),
  ],
  title: (_found, where) => `The image on ${where} is built for another processor`,
  why: 'The kernel cannot run its program: a Spark is ARM (arm64), most published images are for x86-64 (amd64).',
  advice: (_found, where) => [
    `On ${where}: uname -m; docker image inspect --format '{{.Architecture}}' IMAGE`,
    'Use an arm64 or multi-arch image, or build it on a Spark; firstlight plan then finds the new one.',
  ],
  confidence: 0.95,
  specificity: 3,
  looks: ['exec /usr/local/bin/entrypoint.sh: exec format error'],
});

/** The user may not talk to docker. */
export const dockerGroup = lineSignature({
  name: 'docker-group',
  cause: 'docker-group-missing',
  seenOn: 'docker 20 to 29',
  source: 'docker cli; docker SDK for Python',
  forms: [
    pattern(
      ['permission denied while trying to connect to the', 'docker.sock: connect: permission denied'],
      /permission denied while trying to connect to the [Dd]ocker (?:daemon socket|API)|docker\.sock: connect: permission denied/,
    ),
    pattern(
      "Connection aborted.', PermissionError(13",
      /Connection aborted\.', PermissionError\(13, 'Permission denied'\)/,
    ),
  ],
  title: (_found, where) => `The user may not use docker on ${where}`,
  why: 'It is not in the group docker there, or its session is older than its membership.',
  advice: (_found, where) => [
    `On ${where}: sudo usermod -aG docker "$USER", and log in anew; a session that is open keeps its old groups`,
    `See that it worked, on ${where}: docker ps`,
  ],
  confidence: 0.96,
  specificity: 3,
  looks: [
    'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock',
  ],
});

/** No slug of the closed list is for this: the plan finds a missing image before the launch. */
export const imageMissing = lineSignature({
  name: 'image-missing',
  cause: 'unknown',
  seenOn: 'docker 20 to 29, podman 5',
  source: 'docker cli; containers/image',
  forms: [
    pattern(
      ['No such image', 'pull access denied for', 'Unable to find image', 'manifest unknown'],
      /No such image: (?<image>[\w./:@-]{1,400})|pull access denied for (?<repository>[\w./:@-]{1,400}),|Unable to find image '(?<wanted>[\w./:@-]{1,400})' locally|manifest (?:for (?<tag>[\w./:@-]{1,400}) not found|unknown)/,
    ),
  ],
  title: ({ groups }, where) =>
    `${where} does not have the image ${groups['image'] ?? groups['repository'] ?? groups['wanted'] ?? groups['tag'] ?? ''}`.trim(),
  why: 'Images are never pulled without being asked for.',
  advice: ({ groups }, where) => [
    `On ${where}: docker pull ${groups['image'] ?? groups['wanted'] ?? groups['tag'] ?? 'IMAGE'}`,
  ],
  confidence: 0.8,
  specificity: 1,
});

/** What a cache of models or kernels is called. */
const CACHE =
  /cache|\.triton|\.flashinfer|\.tilelang|\.nv\b|inductor|\.local\/|\.config|huggingface|\/hub\b|deep_gemm|\/\.\w{1,80}'?$|\.no_exist|snapshots|outlines|torch_extensions|\.lock/i;

/** A cache folder that root made, or that is mounted read-only. */
export const cacheNotWritable = lineSignature({
  name: 'cache-not-writable',
  cause: 'cache-directory-not-writable',
  seenOn: 'vLLM image of September 2026, FlashInfer 0.7, huggingface_hub 0.34 and 1.0',
  source: "Python's OSError; coreutils mkdir; huggingface_hub; hf_xet",
  forms: [
    pattern(
      ['Permission denied', 'Read-only file system'],
      /(?:PermissionError: \[Errno 13\] Permission denied|OSError: \[Errno 30\] Read-only file system|\[Errno 13\] Permission denied): ?b?['"](?<path>\/[^'"]{1,400})['"]/,
    ),
    pattern(
      ['cannot create directory', 'ailed to create directory', 'annot write to', 'ould not create'],
      /(?:cannot create directory|[Ff]ailed to create directory|[Cc]annot write to|[Cc]ould not create)[^/'"‘]{0,400}['"‘]?(?<path>\/[^'"’:]{1,400})['"’]?.{0,600}(?:Permission denied|Read-only file system)/,
    ),
    pattern(
      [
        'Permission denied (os error 13)',
        'Read-only file system (os error 30)',
        'is not writable',
        'uid not found',
      ],
      /(?:Permission denied \(os error 13\)|Read-only file system \(os error 30\))(?:.{0,600}?(?<path>\/[\w./-]{0,400}(?:cache|hub|xet)[\w./-]{0,400}))?|(?<folder>\/\S{0,300}cache\S{0,300}) is not writable|getpwuid\(\): uid not found/,
    ),
  ],
  counts: ({ message, groups }) => {
    const path = groups['path'] ?? groups['folder'];
    if (/docker\.sock|\/dev\/|\/proc\/|\/sys\/|There was a problem when trying to write/.test(message))
      return false;
    return path === undefined || CACHE.test(path);
  },
  title: ({ groups }, where) =>
    `The rank on ${where} may not write ${groups['path'] ?? groups['folder'] ?? 'its cache'}`,
  why: ({ message }) =>
    /Read-only|os error 30|Errno 30/.test(message)
      ? 'The folder is mounted read-only.'
      : /getpwuid/.test(message)
        ? 'The container runs as a user that the image has no name and no home for.'
        : 'The folder belongs to another user, as when docker made it as root for a mount.',
  advice: ({ message, groups }, where) => [
    /Read-only|os error 30|Errno 30/.test(message)
      ? 'Mount it without :ro in run.volumes, or point the cache elsewhere (HF_HOME, XDG_CACHE_HOME, VLLM_CACHE_ROOT).'
      : /getpwuid/.test(message)
        ? 'Set HOME, USER and TORCHINDUCTOR_CACHE_DIR in env of the recipe, or run the image as its own user.'
        : `On ${where}, outside of the container: sudo chown -R "$(id -u):$(id -g)" ${quotePlainly((groups['path'] ?? groups['folder'] ?? '/THE/CACHE').replace(/\/[^/]*$/, '') || '/')}`,
  ],
  confidence: ({ message }) => (/getpwuid/.test(message) ? 0.62 : 0.88),
  specificity: 3,
  looks: [
    "PermissionError: [Errno 13] Permission denied: '/home/user/.cache/flashinfer/0.7.0/121a/flashinfer_jit.log'",
  ],
});
