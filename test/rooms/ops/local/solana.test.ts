import { createMint, getAccount, getOrCreateAssociatedTokenAccount, mintTo, transferChecked } from "@solana/spl-token";
import { Connection, Keypair, LAMPORTS_PER_SOL } from "@solana/web3.js";
import { beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../../ops/local/service.ts";
import { startSolana } from "../../../../ops/local/solana.ts";
import { atEnd } from "../../../support/at-end.ts";

let solana: Service;
let connection: Connection;

beforeAll(async () => {
  solana = await startSolana({ slotMs: 20, finalAfter: 4 });
  atEnd(() => solana.close());
  connection = new Connection(solana.url, "confirmed");
});

async function fundedKey(): Promise<Keypair> {
  const key = Keypair.generate();
  const signature = await connection.requestAirdrop(key.publicKey, LAMPORTS_PER_SOL);
  await connection.confirmTransaction({ signature, ...(await connection.getLatestBlockhash()) });
  return key;
}

describe("with an unmodified Connection and spl-token", () => {
  test("a buyer without SOL pays while another key bears the fee", async () => {
    const relayer = await fundedKey();
    const [buyer, shop] = [Keypair.generate(), Keypair.generate()];
    const mint = await createMint(connection, relayer, relayer.publicKey, null, 6);
    const from = await getOrCreateAssociatedTokenAccount(connection, relayer, mint, buyer.publicKey);
    const to = await getOrCreateAssociatedTokenAccount(connection, relayer, mint, shop.publicKey);
    await mintTo(connection, relayer, mint, from.address, relayer, 1_000_000n);
    const before = await connection.getBalance(relayer.publicKey);

    const signature = await transferChecked(connection, relayer, from.address, mint, to.address, buyer, 250_000n, 6);

    expect((await getAccount(connection, to.address)).amount).toBe(250_000n);
    expect(await connection.getBalance(buyer.publicKey)).toBe(0);
    expect(before - (await connection.getBalance(relayer.publicKey))).toBe(10_000);
    const told = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(told?.meta).toMatchObject({ err: null, fee: 10_000 });
    expect(told?.meta?.postTokenBalances).toContainEqual(
      expect.objectContaining({ mint: mint.toBase58(), owner: shop.publicKey.toBase58() }),
    );
  });
});
