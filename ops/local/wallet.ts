import type { Hex, PrivateKeyAccount } from "viem";
import { z } from "zod";
import { parseTypedData } from "../../chains/evm/typed-data.ts";
import type { Caller } from "./seed.ts";
import type { SolanaKey } from "./solana-client.ts";
import { signAsWallet } from "./solana-wallet.ts";

/** Who talks to which service. */
export type Shop = { baseUrl: string; caller: Caller };

const amount = z.object({ unit: z.string(), value: z.string() });
const Status = z.object({
  status: z.enum(["requires_action", "processing", "succeeded", "failed", "expired", "cancelled"]),
  isFinal: z.boolean(),
  pollInMs: z.number().nullish(),
  failureCode: z.string().nullish(),
  info: z.object({ txId: z.string(), optionAmount: amount }).nullish(),
});
const WalletAction = z.object({
  type: z.literal("walletRpc"),
  data: z.object({ chain_id: z.string(), method: z.string(), params: z.array(z.unknown()) }),
});
const BuildAction = z.object({ type: z.literal("build"), data: z.object({ data: z.string() }) });
const Action = z.discriminatedUnion("type", [WalletAction, BuildAction]);
const Options = z.object({
  options: z.array(z.looseObject({ id: z.string(), amount, actions: z.array(Action) })),
});

export type PaymentStatus = z.infer<typeof Status>;
export type PayOption = z.infer<typeof Options>["options"][number];
/** A wallet on EVM; it sends transactions of its own only where it has `sendCall`, which returns the hash. */
export type EvmBuyer = Pick<PrivateKeyAccount, "address" | "signTypedData"> & {
  sendCall?: (call: { to: Hex; data: Hex }) => Promise<Hex>;
};
/** Whose wallet it is: the namespace of its account decides what it can sign. */
export type Buyer = EvmBuyer | SolanaKey;

/** The merchant asks for money: dollars and cents as minor units. Gives the payment's id. */
export async function createPayment(
  shop: Shop,
  request: { referenceId: string; cents: string; expiresAt?: Date },
): Promise<string> {
  const { referenceId, cents, expiresAt } = request;
  // Seconds since 1970, as the deployed service takes it.
  const deadline = expiresAt === undefined ? {} : { expiresAt: Math.ceil(expiresAt.getTime() / 1_000) };
  const body = { referenceId, amount: { unit: "iso4217/USD", value: cents }, ...deadline };
  const answer = await ask(shop, "POST", "/v1/payments", body);
  return z.looseObject({ id: z.string() }).parse(answer).id;
}

/** The wallet asks how these accounts (CAIP-10) can pay. */
export async function listOptions(shop: Shop, paymentId: string, accounts: string[]): Promise<PayOption[]> {
  return Options.parse(await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/options`, { accounts })).options;
}

/** The wallet executes the actions of an option, in order; those that are built at the last moment it fetches first. */
export async function signOption(
  shop: Shop,
  paymentId: string,
  option: PayOption,
  buyer: Buyer,
): Promise<WalletResult[]> {
  const results: WalletResult[] = [];
  for (const action of option.actions) {
    const ready = action.type === "build" ? await fetchActions(shop, paymentId, option.id, action.data.data) : [action];
    for (const { data } of ready) results.push({ type: "walletRpc", data: [await execute(data, buyer)] });
  }
  return results;
}

async function fetchActions(shop: Shop, paymentId: string, optionId: string, data: string) {
  const answer = await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/fetch`, { optionId, data });
  return z.object({ actions: z.array(WalletAction) }).parse(answer).actions;
}

/** Signs typed data and transactions of Solana, and sends what it is asked to send if it can. */
async function execute({ method, params }: z.infer<typeof WalletAction>["data"], buyer: Buyer): Promise<string> {
  if (method === "eth_signTypedData_v4" && "signTypedData" in buyer)
    return await buyer.signTypedData(parseTypedData(z.string().parse(params[1])));
  if (method === "eth_sendTransaction" && "sendCall" in buyer && buyer.sendCall !== undefined) {
    const { to, data } = z.object({ to: z.string(), data: z.string() }).parse(params[0]);
    return await buyer.sendCall({ to: to as Hex, data: data as Hex });
  }
  if (method === "solana_signTransaction" && "secretKey" in buyer)
    return signAsWallet(z.object({ transaction: z.string() }).parse(params[0]).transaction, buyer);
  throw new Error(`this wallet cannot do ${method}`);
}

export type WalletResult = { type: "walletRpc"; data: string[] };

/** The wallet hands the results in. The answer may be final already. */
export async function confirm(
  shop: Shop,
  paymentId: string,
  body: { optionId: string; results: WalletResult[] },
): Promise<PaymentStatus> {
  return Status.parse(await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/confirm`, body));
}

/** Asks where the payment stands; the service holds the answer back until something changes, at most `maxPollMs`. */
export async function getStatus(shop: Shop, paymentId: string, maxPollMs = 0): Promise<PaymentStatus> {
  return Status.parse(await ask(shop, "GET", `/v1/gateway/payment/${paymentId}/status?maxPollMs=${maxPollMs}`));
}

/** Long-polls until the payment is final. */
export async function waitFinal(shop: Shop, paymentId: string, withinMs: number): Promise<PaymentStatus> {
  const until = Date.now() + withinMs;
  for (;;) {
    const left = until - Date.now();
    const status = await getStatus(shop, paymentId, Math.max(0, Math.min(left, 10_000)));
    if (status.isFinal) return status;
    if (left <= 0) throw new Error(`the payment is still ${status.status} after ${withinMs / 1_000} s`);
  }
}

/** All of a buyer's moves: options, signature, confirm. Gives the status that confirm answered. */
export async function pay(shop: Shop, paymentId: string, buyer: Buyer, chain: string): Promise<PaymentStatus> {
  const [option] = await listOptions(shop, paymentId, [`${chain}:${buyer.address}`]);
  if (option === undefined) throw new Error("the service offers no way to pay");
  return await confirm(shop, paymentId, {
    optionId: option.id,
    results: await signOption(shop, paymentId, option, buyer),
  });
}

/** The wallet's owner does not want to pay. */
export async function cancel(shop: Shop, paymentId: string): Promise<void> {
  await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/cancel`);
}

type Answer = { status: number; body: unknown };
/** The service has answered, and it was no success. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

let onAnswer: ((method: string, path: string, answer: Answer) => void) | undefined;

/** Lets tests look at every answer that these moves get. */
export function watchAnswers(look: (method: string, path: string, answer: Answer) => void): void {
  onAnswer = look;
}

/** JSON in and out. Throws Refused, with the service's own words, for an answer that is no success. */
export async function ask(
  { baseUrl, caller }: Shop,
  method: string,
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<unknown> {
  const own = { "api-key": caller.apiKey, "merchant-id": caller.merchantId, "content-type": "application/json" };
  const headers = { ...own, ...more };
  const sent = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
  const response = await fetch(`${baseUrl}${path}`, { ...sent, signal: AbortSignal.timeout(40_000) });
  const text = await response.text();
  onAnswer?.(method, path, { status: response.status, body: JSON.parse(text) });
  if (response.ok) return JSON.parse(text);
  throw new Refused(`${method} ${path.split("?", 1)[0]} answered ${response.status}: ${text}`, response.status);
}
