import type { Hex, PrivateKeyAccount, TypedDataDefinition } from "viem";
import type { Mode } from "../../db/tables.ts";
import { newKey } from "../../local/networks-document.ts";
import type { Result } from "../../payments/error-codes.ts";
import { createBookingHandlers } from "../../payments/lifecycle/book-transfers.ts";
import { acceptConfirm, findVerificationResult } from "../../payments/lifecycle/confirm-payment.ts";
import type { NewPayment } from "../../payments/lifecycle/create-payment.ts";
import { findStatus } from "../../payments/lifecycle/read-payment.ts";
import { createSendHandlers } from "../../payments/lifecycle/relay-transfers.ts";
import { createVerify } from "../../payments/lifecycle/verify-batches.ts";
import type { WalletResult } from "../../payments/lifecycle/wallet-results.ts";
import { createAccount } from "../../payments/merchants/accounts.ts";
import { addDestinations } from "../../payments/merchants/destinations.ts";
import { createMerchant } from "../../payments/merchants/merchants.ts";
import { listOptions } from "../../payments/options/list-options.ts";
import { beginRefunds } from "../../payments/payouts/begin-refunds.ts";
import { beginSettlements } from "../../payments/payouts/begin-settlements.ts";
import { nameRequester } from "../../payments/requester.ts";
import type { OptionView } from "../../payments/views.ts";
import { relayReady, relayWallets } from "../../transfers/evm/drive-lanes.ts";
import { startTransfers } from "../../transfers/start-transfers.ts";
import type { WalletAction } from "../../transfers/wallet-driver.ts";
import { watchChain } from "../../transfers/watch-pass.ts";
import { createPayment } from "./create-payment.ts";
import type { TestChain } from "./evm-chain.ts";
import { findSettlementOf } from "./insert-rows.ts";
import { testActor } from "./test-actor.ts";
import { type DepsOptions, makeDeps, type TestDeps } from "./test-deps.ts";
import { waitUntilMined } from "./transfers-fixture.ts";

/** The requester that confirms a merchant fixture's payments. */
export const fixtureRequester = nameRequester("app", ["fixture", "wallet"], { isOne: true });

/** Returns the outcomes of payouts. Throws the error of the first one that failed. */
export function throwFailed<Outcome extends string>(outcomes: readonly (Outcome | { error: unknown })[]): Outcome[] {
  return outcomes.map((outcome) => {
    if (typeof outcome === "object") throw outcome.error;
    return outcome;
  });
}

/** Returns the value of a successful result. Throws when the result is an error. */
export function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`refused: ${result.code} ${result.message}`);
  return result.value;
}

/** Returns an option's actions as wallet calls. Throws if they have to be fetched, as on Solana. */
export function walletActions(option: Pick<OptionView, "actions">): WalletAction[] {
  return option.actions.map((action) => {
    if ("build" in action) throw new Error("the option's actions have to be fetched");
    return action;
  });
}

/** Performs an option's actions in order as a wallet does: signs typed data, sends transactions and waits for them. */
export async function signOption(
  option: OptionView,
  buyer: PrivateKeyAccount,
  chain?: Pick<TestChain, "client">,
): Promise<WalletResult[]> {
  const results: WalletResult[] = [];
  for (const { method, params } of walletActions(option)) {
    if (method === "eth_signTypedData_v4") {
      const definition = JSON.parse(String(params[1])) as TypedDataDefinition;
      results.push({ type: "walletRpc", data: [await buyer.signTypedData(definition)] });
    } else if (chain) {
      const { to, data } = params[0] as { to: Hex; data: Hex };
      const hash = await chain.client.sendTransaction({ account: buyer, to, data });
      await chain.client.waitForTransactionReceipt({ hash });
      results.push({ type: "walletRpc", data: [hash] });
    }
  }
  return results;
}

/**
 * Returns a fixture for the module payments/ on a real chain and database: a merchant of one mode, and the steps of a
 * payment's life, each by its own domain function.
 */
export async function makeMerchantFixture(
  chain: TestChain,
  options: DepsOptions & {
    mode?: Mode;
    settles?: boolean;
    assets?: readonly string[];
    /** How long changes of the merchant's destinations wait. Default: 0. */
    destinationWaitingHours?: number;
    /** A merchant that the database already has. Default: a new one. */
    merchant?: { accountId: string; merchantId: string };
  } = {},
) {
  const made = await makeDeps(chain, options);
  const { deps, db } = made;
  const mode = options.mode ?? "live";
  for (const id of deps.chains.keys()) await startTransfers(deps, id);
  const { accountId, merchantId } =
    options.merchant ?? (await insertShop(deps, mode, options.destinationWaitingHours ?? 0));
  const destination = newKey().address;
  const assets = options.assets ?? [chain, ...(options.also ?? []).map((more) => more.chain)].map(({ asset }) => asset);
  const addDestination = (to = destination) =>
    addDestinations(deps, {
      actor: testActor,
      accountId,
      mode,
      merchantId,
      settlements: assets.map((asset) => ({ asset, destination: `${asset.split("/")[0]}:${to}` })),
    });
  if (options.settles !== false && !options.merchant) unwrap(await addDestination());
  const handlers = createBookingHandlers(deps);

  const create = async (cents = 100n, more: Partial<NewPayment> = {}) => {
    const caller = { accountId, mode, scopes: [] };
    const amount = { unit: "iso4217/USD", value: cents };
    return unwrap(await createPayment(deps, { caller, merchantId, amount, ...more })).paymentId;
  };
  const accountOf = (buyer: { address: string }, on = chain) => `${on.id}:${buyer.address}`;
  const offerTo = async (paymentId: string, accounts: string[]) =>
    unwrap(await listOptions(deps, { paymentId, mode, accounts })).options;
  const offer = (paymentId: string, ...buyers: { address: string }[]) =>
    offerTo(
      paymentId,
      buyers.map((buyer) => accountOf(buyer)),
    );
  const confirm = (paymentId: string, optionId: string, results: WalletResult[]) =>
    acceptConfirm(deps, { paymentId, mode, optionId, results, requester: fixtureRequester });
  /** Lists the options, signs the first one and confirms it. Returns the attempt's id, which is not verified yet. */
  const attempt = async (paymentId: string, buyer: PrivateKeyAccount, on = chain): Promise<string> => {
    const [option] = await offerTo(paymentId, [accountOf(buyer, on)]);
    if (!option) throw new Error("there is no way to pay");
    const { attemptId } = unwrap(await confirm(paymentId, option.id, await signOption(option, buyer, on)));
    if (!attemptId) throw new Error("no attempt was made");
    return attemptId;
  };
  const verifyOne = createVerify(deps);
  /** Verifies attempts, and a second time those whose payer is a contract, as the queue for contract wallets does. */
  const verify = async (...attemptIds: string[]) => {
    const ends = await Promise.all(attemptIds.map(verifyOne));
    await Promise.all(attemptIds.filter((_id, index) => ends[index] === "by code").map(verifyOne));
  };
  const relay = async () => {
    const handlers = createSendHandlers(deps);
    const ends = [await relayReady(deps, chain.id, handlers), await relayWallets(deps, chain.id, handlers)];
    return ends.includes("more") ? "more" : "idle";
  };
  const watch = async () => {
    await waitUntilMined(chain);
    return watchChain(deps, { chain: chain.id, signal: AbortSignal.abort(), handlers });
  };
  const settlementOf = (paymentId: string) => findSettlementOf(db, paymentId);
  return {
    ...made,
    mode,
    merchantId,
    accountId,
    destination,
    addDestination,
    create,
    accountOf,
    offer,
    confirm,
    attempt,
    verify,
    verificationResult: (attemptId: string) => findVerificationResult(deps, attemptId),
    relay,
    watch,
    /** Makes a complete payment until its money is booked. Returns its id. */
    pay: async (buyer: PrivateKeyAccount, cents = 100n): Promise<string> => {
      const paymentId = await create(cents);
      await verify(await attempt(paymentId, buyer));
      await relay();
      await watch();
      return paymentId;
    },
    settle: async (...ids: string[]) => throwFailed(await beginSettlements(deps, ids)),
    refund: async (...ids: string[]) => throwFailed(await beginRefunds(deps, ids)),
    settlementOf,
    status: async (paymentId: string) => unwrap(await findStatus(deps, { paymentId, mode })),
    transfers: () => db.selectFrom("transfer").selectAll().orderBy("created_at").execute(),
  };
}

async function insertShop(deps: TestDeps["deps"], mode: Mode, destinationWaitingHours: number) {
  const { id: accountId } = await createAccount(deps, { actor: testActor, name: "Shop", destinationWaitingHours });
  const { id: merchantId } = await createMerchant(deps, {
    actor: testActor,
    accountId,
    mode,
    name: "Shop",
    email: "shop@example.test",
  });
  return { accountId, merchantId };
}

export type MerchantFixture = Awaited<ReturnType<typeof makeMerchantFixture>>;
