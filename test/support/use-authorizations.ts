import { randomBytes } from "node:crypto";
import { type Hex, type PrivateKeyAccount, toHex } from "viem";
import { encodeTransfer, hashAuthorization } from "../../chains/evm/eip3009.ts";
import { encodeMulticall } from "../../chains/evm/multicall.ts";
import type { TestChain } from "./evm-chain.ts";
import type { MerchantFixture } from "./merchant-fixture.ts";

/** The members of a transfer that the payer signs anew. */
type Authorized = { receiver: string; amount: bigint; authorization_nonce: string };

/** Returns a transfer of zero from an account to itself that uses a nonce. */
export const useForNothing = ({ payer, authorization_nonce }: { payer: string; authorization_nonce: string }) => ({
  receiver: payer,
  amount: 0n,
  authorization_nonce,
});

/** Returns the same transfer with a nonce of the payer's own. */
export const withOwnNonce = ({ receiver, amount }: Authorized) => ({
  receiver,
  amount,
  authorization_nonce: toHex(randomBytes(32)),
});

/** Makes EIP-3009 transfers of a payer in one transaction, which any account can send, before the lane relays them. */
export async function useAuthorizations(
  chain: TestChain,
  { evm }: Pick<MerchantFixture, "evm">,
  { payer, transfers }: { payer: PrivateKeyAccount; transfers: readonly Authorized[] },
): Promise<Hex> {
  const [token] = evm.tokens.values();
  if (!token?.separator) throw new Error("the chain has no EIP-3009 token");
  const calls: { target: Hex; data: Hex }[] = [];
  for (const { receiver, amount, authorization_nonce } of transfers) {
    const authorization = {
      token: token.token,
      from: payer.address.toLowerCase() as Hex,
      to: receiver as Hex,
      nonce: authorization_nonce as Hex,
      value: amount,
      validBefore: 4_000_000_000,
    };
    const signature = await payer.sign({ hash: hashAuthorization(token.separator, authorization) });
    calls.push({ target: token.token, data: encodeTransfer(authorization, signature) });
  }
  const hash = await chain.client.sendTransaction({ to: evm.multicall, data: encodeMulticall(calls) });
  await chain.client.waitForTransactionReceipt({ hash });
  return hash;
}
