import { AccountLayout } from "@solana/spl-token";
import { NONCE_ACCOUNT_LENGTH, NonceAccount } from "@solana/web3.js";
import { type Account, keepCreated, readAccounts } from "../../../chains/solana/cluster-state.ts";
import { readTokenAccount, validateDestinationAccount } from "../../../chains/solana/mints.ts";
import { listNonceAddresses, readRent } from "../../../chains/solana/nonce-accounts.ts";
import type { SolanaChain, SolanaToken } from "../../../chains/solana/open-solana-chain.ts";
import { failure, type Outcome, ok, warning } from "../finding.ts";
import type { Check } from "../run-checks.ts";
import { describeRelayers, inSol } from "./lanes.ts";

/**
 * Checks the treasury's token accounts and the nonce accounts, which the first worker creates if they are missing, and
 * whether the relayers can pay for them and for payments.
 */
export function accountChecks(chain: SolanaChain, deployment: string): Check[] {
  return [
    {
      name: "accounts",
      async run() {
        const tokens = [...chain.tokens.values()];
        const nonces = await listNonceAddresses(chain, deployment);
        const found = await readAccounts(chain, [
          ...tokens.map(({ treasuryAccount }) => treasuryAccount),
          ...nonces.map(({ address }) => address),
          ...chain.lanes,
        ]);
        const held = found.slice(0, tokens.length).map(keepCreated);
        const nonceAccounts = found.slice(tokens.length, tokens.length + nonces.length).map(keepCreated);
        const [nonceRent, tokenRent] = [await readRent(chain), await readRent(chain, AccountLayout.span)];
        const missing = (accounts: readonly unknown[]) => BigInt(accounts.filter((one) => one === undefined).length);
        const balances = found.slice(tokens.length + nonces.length).map((account) => account?.lamports ?? 0n);
        return [
          ...tokens.map((token, index) => describeTokenAccount(chain, token, held[index], tokenRent)),
          describeNonceAccounts(chain, nonceAccounts, nonceRent),
          ...describeRelayers(chain, balances, {
            accounts: missing(held) * tokenRent + missing(nonceAccounts) * nonceRent,
            marker: nonceRent,
          }),
        ];
      },
    },
  ];
}

function describeTokenAccount(
  { treasury }: SolanaChain,
  { symbol, token, treasuryAccount }: SolanaToken,
  account: Account | undefined,
  rent: bigint,
): Outcome {
  const name = `${symbol} account`;
  if (!account)
    return warning(
      name,
      `the treasury's token account ${treasuryAccount} does not exist`,
      `Nothing to do if lane 0 holds enough: the first worker creates it for about ${inSol(rent)}.`,
    );
  const facts = readTokenAccount(account.data);
  const error = facts ? validateDestinationAccount(facts, { mint: token, owner: treasury }) : "it is no token account";
  if (!error) return ok(name, `the treasury's token account ${treasuryAccount}`);
  return failure(
    name,
    `${treasuryAccount}: ${error}`,
    "Use another treasury, or ask the token's issuer to thaw the account.",
  );
}

function describeNonceAccounts(chain: SolanaChain, accounts: readonly (Account | undefined)[], rent: bigint): Outcome {
  const name = "nonce accounts";
  const existing = accounts.filter((account) => account !== undefined);
  const detail = `${existing.length} of ${accounts.length} exist`;
  const foreign = existing.filter((account) => authorityOf(account) !== chain.treasury).length;
  if (foreign > 0)
    return failure(
      name,
      `${foreign} of ${accounts.length} do not obey the treasury`,
      "Set another first lane: their addresses follow from it, the deployment and the treasury.",
    );
  if (existing.length === accounts.length) return ok(name, detail);
  const cost = inSol(BigInt(accounts.length - existing.length) * rent);
  return warning(
    name,
    detail,
    `Nothing to do if lane 0 holds enough: the first worker creates the others for ${cost}.`,
  );
}

/** Returns the account that may advance a nonce, or undefined if the account is no nonce account. */
function authorityOf({ data }: Account): string | undefined {
  if (data.length !== NONCE_ACCOUNT_LENGTH) return undefined;
  return NonceAccount.fromAccountData(Buffer.from(data)).authorizedPubkey.toBase58();
}
