// The script of a worker.
import { single, worker } from "./inside";

interface TrustedFactory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

const script = single ? worker() : "worker.js";

// The CSP lets only this policy name the URL of a script, and it knows one.
const policy = (globalThis as unknown as { trustedTypes?: TrustedFactory }).trustedTypes?.createPolicy("ackscope", {
  createScriptURL: () => script,
});

// newWorker starts a worker.
export function newWorker(): Worker {
  return new Worker((policy?.createScriptURL(script) ?? script) as string);
}
