import { base58 } from "@scure/base";
import { privateKeyToAccount } from "viem/accounts";
import { GatewayClient, type GetPaymentStatusResponse } from "../client/index.ts";
import { solanaSigner } from "../client/solana.ts";
import { evmSigner } from "../client/viem.ts";
import { CliError } from "./cli-error.ts";
import type { LocalStack } from "./find-stack.ts";

/** The chains of the local stack, by what is in its file. */
export const families = ["evm", "solana"] as const;
export type Family = (typeof families)[number];

/** Pays a live payment of the local stack with one of its funded buyers, any of them. Returns the final status. */
export async function payAsBuyer(
  { url, apiKey, stack }: { url: string; apiKey: string; stack: LocalStack },
  paymentId: string,
  { family, ...options }: { family: Family; timeoutMs: number; signal: AbortSignal },
): Promise<GetPaymentStatusResponse> {
  const gateway = new GatewayClient({ baseUrl: url, apiKey });
  const buyer = family === "evm" ? openEvmBuyer(stack) : openSolanaBuyer(stack);
  // The money of the local stack is worth nothing: its buyers agree to everything.
  return gateway.pay(paymentId, buyer, { ...options, choose: ([option]) => option });
}

function openEvmBuyer({ evm: { chain, buyers } }: LocalStack) {
  const account = privateKeyToAccount(pickOne(buyers).privateKey as `0x${string}`);
  return evmSigner(account, { chains: [Number(chain.replace("eip155:", ""))] });
}

function openSolanaBuyer({ solana: { chain, buyers } }: LocalStack) {
  return solanaSigner({ secretKey: base58.decode(pickOne(buyers).secretKey) }, { chain });
}

/** Any buyer, so that the money of none runs out first. */
function pickOne<T>(buyers: readonly T[]): T {
  const buyer = buyers[Math.floor(Math.random() * buyers.length)];
  if (buyer === undefined) throw new CliError("the local stack has no buyers");
  return buyer;
}
