import type { Hex } from "viem";
import { coldKey, deriveNonce } from "../chains/natural-key.ts";
import type { Store } from "./store.ts";

/** A transfer of the treasury's excess to the cold address. `number` counts the transfers of the asset from 1. */
export type ColdTransfer = { asset: string; number: number; amount: bigint; receiver: string };

/** Returns the nonce of a transfer to the cold address on chain. The signer and the worker derive it from its number. */
export function coldNonce(deployment: string, of: { asset: string; number: number }): Hex {
  return deriveNonce(deployment, coldKey(of));
}

/** Returns the newest transfer of an asset to the cold address. */
export function findLastColdTransfer(store: Store, asset: string): ColdTransfer | undefined {
  const row = store
    .prepare("select number, amount, receiver from cold_transfer where asset = ? order by id desc limit 1")
    .get(asset);
  return (
    row && {
      asset,
      number: Number(row["number"]),
      amount: BigInt(String(row["amount"])),
      receiver: String(row["receiver"]),
    }
  );
}

/** Records a transfer before it is signed. Call it inside a transaction. */
export function insertColdTransfer(store: Store, { asset, number, amount, receiver }: ColdTransfer, at: Date): void {
  store
    .prepare("insert into cold_transfer (asset, number, amount, receiver, signed_at) values (?, ?, ?, ?, ?)")
    .run(asset, number, String(amount), receiver, at.getTime());
}
