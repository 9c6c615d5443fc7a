import { base58 } from "@scure/base";
import { NONCE_ACCOUNT_LENGTH } from "@solana/web3.js";
import { afterEach, expect, test } from "vitest";
import { readBlockhash, readFinal } from "../../../chains/solana/cluster-state.ts";
import { listNonceAddresses, readNonces, readRent } from "../../../chains/solana/nonce-accounts.ts";
import { findMarker } from "../../../chains/solana/payout-markers.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import type { PayoutTransactionRequest } from "../../../signer/solana/transaction-protocol.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../support/altering-proxy.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";
import { waitFor } from "../../support/wait-for.ts";

// A thief with a worker's host and the endpoint that the signer asks first has no marker closed while its payout could be made again.

const DAY_MS = 86_400_000;
const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana);
const [first, second] = [
  await startAlteringProxy({ target: solana.url }),
  await startAlteringProxy({ target: solana.url }),
];
const { SOLANA_TREASURY_KEY = "" } = keys.env;
const rpcUrls = [first.url, second.url];
const signing = await startSignerFor(parseNetworks(await describeSolanaDeployment(solana, keys, { rpcUrls })), {
  SOLANA_TREASURY_KEY,
});
const { signer, clock } = signing;
const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
const { chain, deps } = fixture;
const [feePayer = ""] = chain.lanes;

afterEach(() => {
  first.alter(undefined);
  second.alter(undefined);
});

/** Makes a payment and authorizes its payout. Returns the request for one more transaction of the payout. */
async function authorize() {
  const { id } = await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana)));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const transfer = await fixture.db
    .selectFrom("transfer")
    .selectAll()
    .where("settlement_id", "=", id)
    .executeTakeFirstOrThrow();
  // Workers take the first free nonce account, so the last one keeps its value.
  const nonceAccount = (await listNonceAddresses(chain, deps.deployment)).at(-1)?.address ?? "";
  const { authorization_nonce: memo, amount, receiver: destination } = transfer;
  const request: PayoutTransactionRequest = {
    asset: solana.asset,
    feePayer,
    nonceAccount,
    nonce: (await readNonces(chain, [nonceAccount], "confirmed")).nonces[0] ?? "",
    markerRent: await readRent(chain),
    budget: { units: 200_000, unitPrice: 0n },
    payouts: [{ memo, destination, amount, makeAccount: true }],
  };
  return { request, marker: findMarker(chain.treasury, memo).address };
}

/** Sends what is ready until it is paid and final. */
async function payOut(): Promise<void> {
  fixture.clock.advance(65_000);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    const made = await fixture.transactions();
    const transfers = await fixture.transfers();
    return made.every(({ state }) => state === "final") && transfers.every(({ state }) => state === "confirmed");
  });
}

async function close(address: string) {
  const { blockhash } = await readBlockhash(chain);
  const markers = [{ address, lamports: await readRent(chain) }];
  return signer.signMarkerClosing({ chain: chain.chain, feePayer, blockhash, markers });
}

/** Shows a nonce account with this value at an address. */
const showNonce =
  (address: string, nonce: string): Alter =>
  (_method, params, result) => {
    const at = Array.isArray(params[0]) ? params[0].indexOf(address) : -1;
    if (at === -1) return result;
    // Version, state, authority, nonce, and the fee of a signature.
    const data = Buffer.alloc(NONCE_ACCOUNT_LENGTH);
    data.set([1, 0, 0, 0, 1, 0, 0, 0, ...base58.decode(chain.treasury), ...base58.decode(nonce)]);
    const lamports = 1_447_680;
    const account = { owner: "1".repeat(32), lamports, executable: false, rentEpoch: 0, space: data.length };
    const { context, value } = result as { context: unknown; value: unknown[] };
    return { context, value: value.with(at, { ...account, data: [data.toString("base64"), "base64"] }) };
  };

test("an endpoint that shows a recent blockhash as a durable nonce has no marker closed within a day", async () => {
  const { request, marker } = await authorize();
  const { blockhash } = await readBlockhash(chain);
  first.alter(showNonce(request.nonceAccount, blockhash));
  // The transaction can be included without the nonce account, while the blockhash is valid.
  expect(await signer.signPayoutTransaction({ ...request, nonce: blockhash })).toMatchObject({ ok: true });
  first.alter(undefined);
  await payOut();
  expect(await close(marker)).toMatchObject({ ok: false, reason: "marker_in_use" });
  clock.advance(DAY_MS - 60_000);
  expect(await close(marker)).toMatchObject({ ok: false, reason: "marker_in_use" });
  clock.advance(60_000);
  expect(await close(marker)).toMatchObject({ ok: true, addresses: [marker] });
});

test("a marker stays while only one endpoint shows that no transaction of its payout can be included", async () => {
  const { request, marker } = await authorize();
  // The thief keeps this transaction.
  expect(await signer.signPayoutTransaction(request)).toMatchObject({ ok: true });
  await payOut();
  clock.advance(DAY_MS);
  for (const liar of [first, second]) {
    liar.alter(showNonce(request.nonceAccount, newSolanaKey().address));
    expect(await close(marker)).toMatchObject({ ok: false, reason: "marker_in_use" });
    liar.alter(undefined);
  }
});

test("a marker that only one endpoint shows is not closed", async () => {
  const { request, marker } = await authorize();
  const { blockhash } = await readBlockhash(chain);
  first.alter(showNonce(request.nonceAccount, blockhash));
  expect(await signer.signPayoutTransaction({ ...request, nonce: blockhash })).toMatchObject({ ok: true });
  first.alter(undefined);
  const signedIn = await chain.rpc.ask("getSlot", (connection) => connection.getSlot("processed"));
  await waitFor(async () => (await readFinal(chain)).slot > signedIn, { within: 10_000 });
  clock.advance(DAY_MS);
  for (const liar of [first, second]) {
    liar.alter(showNonce(marker, newSolanaKey().address));
    expect(await close(marker)).toMatchObject({ ok: false, reason: "marker_in_use" });
    liar.alter(undefined);
  }
  await payOut();
  clock.advance(DAY_MS);
  expect(await close(marker)).toMatchObject({ ok: true, addresses: [marker] });
});

test("no marker is closed while only one endpoint answers", async () => {
  const { marker } = await authorize();
  await payOut();
  clock.advance(DAY_MS);
  second.alter((method, _params, result) =>
    method === "getMultipleAccounts" ? new RpcRefusal({ code: -32_000, message: "node is behind" }) : result,
  );
  expect(await close(marker)).toMatchObject({ ok: false, reason: "chain_unavailable" });
  second.alter(undefined);
  expect(await close(marker)).toMatchObject({ ok: true, addresses: [marker] });
});
