import type { TransferDeps } from "./transfer-deps.ts";

/** Exports the newest block that a watcher has read, and when: a head that no watcher reads is no evidence of a halted chain. */
export function noteHead({ metrics, now }: Pick<TransferDeps, "metrics" | "now">, chain: string, head: number): void {
  metrics.headBlock.set({ chain }, head);
  metrics.headReadAt.set({ chain }, now().getTime() / 1_000);
}
