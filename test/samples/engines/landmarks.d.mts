export type Hit = { readonly msg: string; readonly id?: string; readonly rank?: string; readonly who?: string };
export function sglLine(raw: string): Hit;
export function vllmLine(raw: string): Hit;
export const TQDM_LOAD: RegExp;
export const SGL_TQDM_CAP: RegExp;
export const VLLM_TQDM_CAP: RegExp;
