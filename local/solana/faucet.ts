import { generateKeyPairSync, sign } from "node:crypto";
import { base58 } from "@scure/base";
import { bytesOf, type Key, keyOf, memoPrograms, systemProgram } from "./account-store.ts";
import type { Methods } from "./chain-methods.ts";
import { addressAt, configAt, numberAt } from "./rpc-params.ts";
import { readTransaction } from "./transaction-format.ts";
import type { Ledger } from "./validator-state.ts";

/** Half of the total supply of SOL, in lamports. */
const half = 250_000_000_000_000_000n;

/** Returns the airdrop method. An airdrop is a real transaction, so it has a signature and a status. */
export function faucetMethods({ bank, slots, land }: Ledger): Methods {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const faucet = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  bank.accounts.write(keyOf(faucet), {
    lamports: half,
    owner: new Uint8Array(32),
    data: new Uint8Array(),
    executable: false,
  });
  let airdrops = 0;
  return {
    requestAirdrop(params) {
      airdrops += 1;
      const { recentBlockhash = slots.tip().blockhash } = configAt(params, 2);
      const message = airdropMessage(
        faucet,
        addressAt(params, 0),
        BigInt(numberAt(params, 1)),
        String(recentBlockhash),
        airdrops,
      );
      const transaction = readTransaction(Buffer.concat([Uint8Array.of(1), sign(null, message, privateKey), message]));
      land(transaction);
      return transaction.signature;
    },
  };
}

/** Returns a transfer with a unique memo, so that two equal airdrops are two transactions. */
function airdropMessage(faucet: Uint8Array, to: Key, lamports: bigint, blockhash: string, number: number): Buffer {
  const memo = Buffer.from(`airdrop ${number}`);
  const amount = Buffer.alloc(12);
  amount.writeUInt32LE(2);
  amount.writeBigUInt64LE(lamports, 4);
  return Buffer.concat([
    // One signer; the two programs are read-only.
    Uint8Array.of(1, 0, 2),
    Uint8Array.of(4),
    ...[faucet, bytesOf(to), bytesOf(systemProgram), bytesOf(memoPrograms[0] ?? "")],
    base58.decode(blockhash),
    Uint8Array.of(2),
    ...[Uint8Array.of(2, 2, 0, 1, amount.length), amount],
    ...[Uint8Array.of(3, 0, memo.length), memo],
  ]);
}
