import type { Hex } from "viem";
import { coldKey, deriveNonce } from "../chains/natural-key.ts";
import { insertAudited, ownActor } from "./audit/entries.ts";
import type { Store } from "./store.ts";

/** A transfer of a treasury's excess to the cold address. `number` counts the treasury's transfers of the asset from 1. */
export type ColdTransfer = { treasury: string; asset: string; number: number; amount: bigint; receiver: string };

/** Returns the nonce of a transfer to the cold address on chain. The signer and the worker derive it from its number. */
export function coldNonce(deployment: string, of: { asset: string; number: number }): Hex {
  return deriveNonce(deployment, coldKey(of));
}

/** Returns the newest transfer of a treasury's asset to the cold address. */
export function findLastColdTransfer(
  store: Store,
  { treasury, asset }: { treasury: string; asset: string },
): ColdTransfer | undefined {
  const row = store
    .prepare(
      "select number, amount, receiver from cold_transfer where treasury = ? and asset = ? order by id desc limit 1",
    )
    .get(treasury, asset);
  if (!row) return undefined;
  const { number, amount, receiver } = row;
  return { treasury, asset, number: Number(number), amount: BigInt(String(amount)), receiver: String(receiver) };
}

/** Records a transfer before it is signed. Call it inside a transaction. */
export function insertColdTransfer(store: Store, transfer: ColdTransfer, at: Date): void {
  const { treasury, asset, number, amount, receiver } = transfer;
  const row = { treasury, asset, number, amount: String(amount), receiver, signed_at: at.getTime() };
  insertAudited(store, { table: "cold_transfer", row, action: "cold_transfer.signed", actor: ownActor, at });
}
