import { getSolanaChain } from "../../chains/open-chains.ts";
import type { Mode } from "../../db/tables.ts";
import { networksDocument, newKey } from "../../local/networks-document.ts";
import { signAsWallet } from "../../local/solana-buyer.ts";
import { newSolanaKey, type SolanaKey } from "../../local/solana-client.ts";
import { describeSolana, type SolanaChainKeys } from "../../local/solana-entry.ts";
import type { Mint } from "../../local/spl-tokens.ts";
import { reconcileChain } from "../../payments/accounting/reconcile-chain.ts";
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
import { listActions, listOptions } from "../../payments/options/list-options.ts";
import { beginSettlements } from "../../payments/payouts/begin-settlements.ts";
import { parseNetworks } from "../../runtime/networks/read-networks.ts";
import { readHistory } from "../../transfers/solana/read-history.ts";
import { submitReady } from "../../transfers/solana/submit-ready.ts";
import { startTransfers } from "../../transfers/start-transfers.ts";
import { watchChain } from "../../transfers/watch-pass.ts";
import { createPayment } from "./create-payment.ts";
import type { TestChain } from "./evm-chain.ts";
import { findSettlementOf } from "./insert-rows.ts";
import { isCaughtUp } from "./is-caught-up.ts";
import { fixtureRequester, throwFailed, unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";
import { type DepsOptions, makeDepsFor } from "./test-deps.ts";
import { makeSolanaKeys, type TestSolana } from "./test-solana.ts";

/** The parts of a deployment that outlive its processes and its database. */
type Deployment = { keys: SolanaChainKeys; accountId: string; merchantId: string; destination: string };

export type SolanaMerchantFixtureOptions = Pick<DepsOptions, "databaseUrl" | "clock" | "memory" | "signer"> & {
  /** Default: new keys. */
  keys?: SolanaChainKeys;
  /** An existing deployment, whose merchant the database already has. Default: a new one. */
  of?: Deployment;
  mode?: Mode;
  lanes?: number;
  /** Additional mints beside the cluster's first one. */
  mints?: readonly Mint[];
  /** Mints in which the merchant settles. Default: all mints of the cluster. */
  settles?: readonly Mint[];
  rpcUrls?: readonly string[];
  /** Members that override the cluster's entry. */
  change?: Record<string, unknown>;
  /** An EVM chain of the same deployment, whose USDC the merchant also settles. */
  evm?: TestChain;
};

/** Returns the steps that worker processes take, each by its own domain function. */
function stepsOf(deps: Awaited<ReturnType<typeof makeDepsFor>>["deps"], id: string) {
  const verifyOne = createVerify(deps);
  const handlers = createBookingHandlers(deps);
  const watchOnly = (signal = AbortSignal.abort()) => watchChain(deps, { chain: id, signal, handlers });
  const history = () => readHistory(deps, id, handlers);
  return {
    verify: async (...attemptIds: string[]) => void (await Promise.all(attemptIds.map(verifyOne))),
    submit: () => submitReady(deps, id, createSendHandlers(deps)),
    /** Makes one pass of the watcher without reading the history. */
    watchOnly,
    readHistory: history,
    /** Reads the history, which in a worker another job does, and then makes one pass of the watcher. */
    watch: async (signal = AbortSignal.abort()) => {
      await history();
      return watchOnly(signal);
    },
  };
}

/** Returns the networks document of a deployment on a Solana cluster. */
export function describeSolanaDeployment(
  solana: TestSolana,
  keys: SolanaChainKeys,
  options: Pick<SolanaMerchantFixtureOptions, "mints" | "rpcUrls" | "change" | "evm"> = {},
): Promise<Record<string, unknown>> {
  const { mints = [], rpcUrls = [solana.url], change = {}, evm } = options;
  const given = { id: solana.id, mints: [solana.mint, ...mints], keys, rpcUrls, slotMs: 100 };
  const network = describeSolana({ ...given, change: { nonceAccounts: 3, ...change } });
  const besides = evm ? [{ ...evm, chain: evm.client, rpcUrls: [evm.url] }] : [];
  return networksDocument("test", besides, [network]);
}

/** Returns the same fixture as `makeMerchantFixture`, on a Solana cluster. */
export async function makeSolanaMerchantFixture(solana: TestSolana, options: SolanaMerchantFixtureOptions = {}) {
  const { id } = solana;
  const mode = options.mode ?? "live";
  const keys = options.keys ?? options.of?.keys ?? (await makeSolanaKeys(solana, options.lanes));
  const mints = [solana.mint, ...(options.mints ?? [])];
  const { evm } = options;
  const networks = parseNetworks(await describeSolanaDeployment(solana, keys, options));
  const env = { ...keys.env, ...evm?.keys.env };
  const made = await makeDepsFor(networks, env, options);
  const { deps, db } = made;
  for (const one of deps.chains.keys()) await startTransfers(deps, one);
  const open = async (): Promise<Omit<Deployment, "keys">> => {
    const { id: accountId } = await createAccount(deps, { actor: testActor, name: "Shop", destinationWaitingHours: 0 });
    const shop = { accountId, mode, name: "Shop", email: "shop@example.test" };
    const { id: merchantId } = await createMerchant(deps, { ...shop, actor: testActor });
    const destination = newSolanaKey().address;
    const settlements = (options.settles ?? mints).map(({ address }) => ({
      asset: `${id}/token:${address}`,
      destination: `${id}:${destination}`,
    }));
    if (evm) settlements.push({ asset: evm.asset, destination: `${evm.id}:${newKey().address}` });
    unwrap(await addDestinations(deps, { actor: testActor, accountId, mode, merchantId, settlements }));
    return { accountId, merchantId, destination };
  };
  const { accountId, merchantId, destination } = options.of ?? (await open());
  const create = async (cents = 100n, more: Partial<NewPayment> = {}) => {
    const caller = { accountId, mode, scopes: [] };
    const amount = { unit: "iso4217/USD", value: cents };
    return unwrap(await createPayment(deps, { caller, merchantId, amount, ...more })).paymentId;
  };
  const offer = async (paymentId: string, ...buyers: { address: string }[]) => {
    const accounts = buyers.map(({ address }) => `${id}:${address}`);
    return unwrap(await listOptions(deps, { paymentId, mode, accounts })).options;
  };
  /** Returns the transaction that a wallet is asked to sign, in base64. */
  const fetchTransaction = async (paymentId: string, optionId: string): Promise<string> => {
    const { actions } = unwrap(await listActions(deps, { paymentId, mode, optionId, data: "" }));
    const [param] = (actions[0]?.params ?? []) as { transaction: string }[];
    return param?.transaction ?? "";
  };
  const confirm = (paymentId: string, optionId: string, results: WalletResult[]) =>
    acceptConfirm(deps, { paymentId, mode, optionId, results, requester: fixtureRequester });
  /** Lists the options, fetches the transaction and signs it. Returns what a confirm needs. */
  const sign = async (paymentId: string, buyer: SolanaKey) => {
    const [option] = await offer(paymentId, buyer);
    if (!option) throw new Error("there is no way to pay");
    const signed = signAsWallet(await fetchTransaction(paymentId, option.id), buyer);
    return { optionId: option.id, signed };
  };
  const attemptWith = async (paymentId: string, optionId: string, signed: string): Promise<string> => {
    const { attemptId } = unwrap(await confirm(paymentId, optionId, [{ type: "walletRpc", data: [signed] }]));
    if (!attemptId) throw new Error("no attempt was made");
    return attemptId;
  };
  const attempt = async (paymentId: string, buyer: SolanaKey): Promise<string> => {
    const { optionId, signed } = await sign(paymentId, buyer);
    return attemptWith(paymentId, optionId, signed);
  };
  const { verify, submit, watch, watchOnly, readHistory: readOn } = stepsOf(deps, id);
  const status = async (paymentId: string) => unwrap(await findStatus(deps, { paymentId, mode }));
  /** Makes passes of the watcher until `isSo` returns true. Throws after `withinMs`. */
  const watchUntil = async (isSo: () => Promise<boolean>, withinMs = 120_000): Promise<void> => {
    for (const until = Date.now() + withinMs; !(await isSo()); ) {
      if (Date.now() > until) throw new Error("the condition did not hold within the time limit");
      await watch(new AbortController().signal);
    }
  };
  const watchUntilState = (paymentId: string, state: string) =>
    watchUntil(async () => (await status(paymentId)).state === state);
  const settlementOf = (paymentId: string) => findSettlementOf(db, paymentId);
  return {
    ...made,
    solana,
    keys,
    mode,
    merchantId,
    accountId,
    destination,
    chain: getSolanaChain(deps.chains, id),
    create,
    offer,
    fetchTransaction,
    confirm,
    sign,
    attempt,
    attemptWith,
    verify,
    submit,
    watch,
    status,
    watchOnly,
    readHistory: readOn,
    watchUntil,
    watchUntilState,
    settlementOf,
    /** Returns the dependencies and steps of another process of the same deployment. */
    anotherProcess: async () => {
      const { databaseUrl, clock } = made;
      const { signer } = options;
      const other = await makeDepsFor(networks, env, { databaseUrl, clock, ...(signer ? { signer } : {}) });
      return { ...other, ...stepsOf(other.deps, id) };
    },
    verificationResult: (attemptId: string) => findVerificationResult(deps, attemptId),
    /** Begins settlements as soon as the watcher is caught up. */
    settle: async (...ids: string[]) => {
      await watchUntil(() => isCaughtUp(deps, id));
      return throwFailed(await beginSettlements(deps, ids));
    },
    /** Reconciles while the watcher runs, because reconciliation waits until the watcher reaches its slot. */
    reconcile: async () => {
      let over = false;
      const watching = watchUntil(async () => over, 60_000);
      const result = await reconcileChain(deps, { chain: id }).finally(() => {
        over = true;
      });
      await watching;
      return result;
    },
    /** Makes a complete payment and waits until its money is booked. Returns its id. */
    pay: async (buyer: SolanaKey, cents = 100n): Promise<string> => {
      const paymentId = await create(cents);
      await verify(await attempt(paymentId, buyer));
      await submit();
      await watchUntilState(paymentId, "succeeded");
      return paymentId;
    },
    transfers: () => db.selectFrom("transfer").selectAll().orderBy("created_at").execute(),
    transactions: () => db.selectFrom("transaction").selectAll().orderBy("created_at").execute(),
  };
}

export type SolanaMerchantFixture = Awaited<ReturnType<typeof makeSolanaMerchantFixture>>;
