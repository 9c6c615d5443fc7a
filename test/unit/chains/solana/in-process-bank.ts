import { MINT_SIZE, MintLayout } from "@solana/spl-token";
import { Connection, PublicKey, type VersionedTransactionResponse } from "@solana/web3.js";
import { type TokenProgram, tokenPrograms } from "../../../../chains/solana/build-payment.ts";
import type { Keypair } from "../../../../chains/solana/ed25519-keys.ts";
import { firstSignature, parseTransaction, withSignature } from "../../../../chains/solana/wire-format.ts";
import { keyOf } from "../../../../local/solana/account-store.ts";
import { historyMethods } from "../../../../local/solana/history-methods.ts";
import { readTransaction } from "../../../../local/solana/transaction-format.ts";
import { type Ledger, openLedger } from "../../../../local/solana/validator-state.ts";

const keyFor = (address: string) => keyOf(new PublicKey(address).toBytes());

/** Opens a ledger with the real programs in this process. Tests read results with an unmodified web3.js Connection. */
export function openBank() {
  let now = 1_800_000_000_000;
  const ledger = openLedger({ finalityDepth: 2, now: () => now });
  const connection = connectTo(ledger);
  return {
    ledger,
    blockhash: () => ledger.slots.tip().blockhash,
    advance() {
      now += 400;
      ledger.advance(1);
    },
    giveSol(address: string, lamports = 10_000_000_000n) {
      const state = { lamports, owner: new Uint8Array(32), data: new Uint8Array(), executable: false };
      ledger.bank.accounts.write(keyFor(address), state);
    },
    makeMint(address: string, authority: string, decimals: number, program: TokenProgram = "token") {
      const data = Buffer.alloc(MINT_SIZE);
      const [mintAuthority, freezeAuthority] = [new PublicKey(authority), PublicKey.default];
      const options = { mintAuthorityOption: 1, freezeAuthorityOption: 0 } as const;
      MintLayout.encode(
        { ...options, mintAuthority, freezeAuthority, supply: 0n, decimals, isInitialized: true },
        data,
      );
      const owner = tokenPrograms[program].toBytes();
      ledger.bank.accounts.write(keyFor(address), { lamports: 10_000_000n, owner, data, executable: false });
    },
    read: (address: string) => ledger.bank.accounts.read(keyFor(address)),
    /** Signs a transaction with these keys, executes it, and returns it as a Connection reads it. */
    async land(bytes: Uint8Array, ...signers: Keypair[]): Promise<VersionedTransactionResponse> {
      const signed = signers.reduce(signWith, bytes);
      const landed = ledger.land(readTransaction(signed));
      if (!landed) throw new Error("the ledger refused the transaction");
      this.advance();
      this.advance();
      const found = await connection.getTransaction(firstSignature(signed), { maxSupportedTransactionVersion: 0 });
      if (!found) throw new Error("the transaction was not found");
      return found;
    },
  };
}

function signWith(bytes: Uint8Array, signer: Keypair): Uint8Array {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(parsed.error);
  return withSignature(parsed, signer.address, signer.sign(parsed.message));
}

/** Returns a Connection whose calls the ledger answers. */
function connectTo(ledger: Ledger): Connection {
  const methods = historyMethods(ledger);
  const answer = (_: unknown, init?: { body?: unknown }) => {
    const { id, method, params } = JSON.parse(String(init?.body));
    return Response.json({ jsonrpc: "2.0", id, result: methods[method]?.(params) ?? null });
  };
  const fetch = async (input: unknown, init?: { body?: unknown }) => answer(input, init);
  return new Connection("http://ledger.invalid", { commitment: "confirmed", fetch: fetch as typeof globalThis.fetch });
}
