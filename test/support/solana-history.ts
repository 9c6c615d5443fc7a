import type { SolanaKey } from "../../local/solana-client.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "./solana-merchant-fixture.ts";
import { sendDust, sendTokens, type TestSolana } from "./test-solana.ts";
import { waitFor } from "./wait-for.ts";

/** Makes a separate deployment whose history has been listed once and is read without a rate limit. */
export async function makeListedFixture(
  solana: TestSolana,
  { rpcUrls, change }: { rpcUrls: readonly string[]; change?: Record<string, unknown> },
): Promise<SolanaMerchantFixture> {
  const fixture = await makeSolanaMerchantFixture(solana, {
    rpcUrls,
    change: { historyReadsPerSecond: 10_000, ...change },
  });
  await fixture.readHistory();
  return fixture;
}

/** Makes a buyer's own transfer that names a payment and shows only in the history. Returns the payment's id. */
export async function payUnsolicited(
  solana: TestSolana,
  fixture: SolanaMerchantFixture,
  buyer: SolanaKey,
): Promise<string> {
  const paymentId = await fixture.create();
  const [option] = await fixture.offer(paymentId, buyer);
  const { authorization_nonce: memo } = await fixture.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("id", "=", option?.id ?? "")
    .executeTakeFirstOrThrow();
  const to = fixture.keys.treasury.address;
  await waitFinalized(solana, await sendTokens(solana, { from: buyer, to, amount: 1_000_000n, memo }));
  return paymentId;
}

/** Waits until all transactions are final. Those that were sent together need not land in the order of their signatures. */
export async function waitFinalized({ client }: TestSolana, ...signatures: readonly string[]): Promise<void> {
  const isFinal = async () => {
    const { value } = await client.connection.getSignatureStatuses([...signatures], { searchTransactionHistory: true });
    return value.every((status) => status?.confirmationStatus === "finalized");
  };
  await waitFor(isFinal, { within: 30_000 });
}

/** Sends small deposits to the treasury, and waits until they are final. Returns their signatures. */
export async function sendDeposits(solana: TestSolana, some: SolanaMerchantFixture, count: number): Promise<string[]> {
  const signatures = await sendDust(solana, some.keys.treasury.address, count);
  await waitFinalized(solana, ...signatures);
  return signatures;
}

/** Returns the transactions whose movements are recorded. */
export async function listObserved({ db }: SolanaMerchantFixture): Promise<string[]> {
  return (await db.selectFrom("observation").select("tx_hash").execute()).map((row) => row.tx_hash);
}

/** Reads the history a few times, each time when everything that waits is due. */
export async function readTimes(some: SolanaMerchantFixture, count: number): Promise<void> {
  for (let read = 0; read < count; read += 1) {
    some.clock.advance(60_000);
    await some.readHistory();
  }
}
