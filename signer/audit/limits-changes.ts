import type { LimitsState } from "../limits.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { inStoreTransaction } from "../store.ts";
import { insertAudited, ownActor } from "./entries.ts";

/**
 * Returns a function that records the limits file when it is another one than the newest that the store knows, also one that was
 * changed while no signer ran. Nothing is decided by a file that is not recorded.
 */
export function recordLimits({ store, now }: Pick<SignerDeps, "store" | "now">): (state: LimitsState) => void {
  return ({ sha256, state }) => {
    const newest = store.prepare("select id, sha256, state from limits_file order by id desc limit 1").get();
    if (newest?.["sha256"] === sha256 && newest["state"] === state) return;
    const at = now();
    const row = { sha256, state, at: at.getTime() };
    const before = newest && ({ table: "limits_file", id: Number(newest["id"]) } as const);
    const action = `limits_file.${state}`;
    inStoreTransaction(store, () =>
      insertAudited(store, { table: "limits_file", row, ...(before && { before }), action, actor: ownActor, at }),
    );
  };
}
