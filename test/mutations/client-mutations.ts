import type { MutationGroup } from "./mutation.ts";

/** Mutations of the client for merchants' servers and wallets. */
export const clientMutations: readonly MutationGroup[] = [
  {
    file: "client/wallet/check-evm-actions.ts",
    tests: ["test/unit/client/evm-actions.test.ts"],
    mutations: [
      {
        name: "a wallet signs an authorization of another amount than its option's",
        find: 'requireSafe(toNumber(message["value"]) === terms.amount, "the authorization is for another amount");',
        replace: "",
      },
      {
        name: "a wallet grants an allowance to any contract",
        find: 'requireSafe(isSame(account, terms.permit2), "the approval is for another contract");',
        replace: "",
      },
      {
        name: "a wallet signs for another chain than its option's",
        find: 'requireSafe(toNumber(data.domain["chainId"]) === terms.chainId, "the typed data is for another chain");',
        replace: "",
      },
    ],
  },
  {
    file: "client/wallet/check-evm-actions.ts",
    tests: ["test/unit/client/typed-data.test.ts"],
    mutations: [
      {
        name: "a wallet signs an authorization without an end",
        find: 'requireSafe(endsBy(message["validBefore"], terms), "the authorization is valid for too long");',
        replace: "",
      },
    ],
  },
  {
    file: "client/wallet/typed-data.ts",
    tests: ["test/unit/client/typed-data.test.ts"],
    mutations: [
      {
        name: "a wallet signs for no chain, because its library drops a chain id that is a text",
        find: 'Number.isSafeInteger(given["chainId"])',
        replace: "true",
      },
      {
        name: "a wallet signs for a domain that is told apart by its salt",
        find: "ofDomain.length === Object.keys(given).length",
        replace: "true",
      },
    ],
  },
  {
    file: "client/viem.ts",
    tests: ["test/unit/client/evm-actions.test.ts"],
    mutations: [
      {
        name: "an error of the EVM signer shows the private key that it was given",
        find: 'if (typeof wallet !== "object" || wallet === null)',
        replace: "if (wallet === null)",
        tests: ["test/unit/client/signing-secrets.test.ts"],
      },
      {
        name: "a wallet that has lost the answer of a transaction does not say that it may be sent",
        find: "throw isPayment && !isDeclined(error) ? new UnknownSendError(option.id, error) : error;",
        replace: "throw error;",
      },
    ],
  },
  {
    file: "client/wallet/hand-in.ts",
    tests: ["test/unit/client/pay.test.ts"],
    mutations: [
      {
        name: "a wallet does not confirm what it has sent after its signal was aborted",
        find: "return await gateway.confirm(payment, request, { signal: late.signal });",
        replace: "return await gateway.confirm(payment, request, { signal: end });",
      },
    ],
  },
  {
    file: "client/wallet/payment-link.ts",
    tests: ["test/unit/client/payment-link.test.ts"],
    mutations: [
      {
        name: "a wallet takes links of hosts whose names contain the service's",
        find: "|| hostname.endsWith(",
        replace: "|| hostname.includes(",
      },
    ],
  },
  {
    file: "client/solana.ts",
    tests: ["test/unit/client/signing-secrets.test.ts"],
    mutations: [
      {
        name: "an error of the Solana signer shows the secret key that it was given",
        find: 'if (typeof wallet !== "object" || wallet === null)',
        replace: "if (wallet === null)",
      },
    ],
  },
  {
    file: "client/wallet/check-solana-actions.ts",
    tests: ["test/unit/client/solana-actions.test.ts"],
    mutations: [
      {
        name: "a wallet signs a transaction with further instructions for its account",
        find: "transfer !== undefined && own.length === 1",
        replace: "transfer !== undefined",
      },
      {
        name: "a wallet on Solana pays the fee of a transaction",
        find: 'requireSafe(signer !== 0, "the account would pay the transaction\'s fee");',
        replace: "",
      },
      {
        name: "a wallet on Solana signs a transaction that never expires",
        find: 'requireSafe(!instructions.some(isNonceAdvance), "the transaction would never expire");',
        replace: "",
      },
    ],
  },
  {
    file: "client/http/transport.ts",
    tests: ["test/unit/client/retries.test.ts"],
    mutations: [
      {
        name: "the client repeats calls that could act twice",
        find: "call.repeatable && retries < maxRetries",
        replace: "retries < maxRetries",
      },
    ],
  },
  {
    file: "client/merchant/merchant-calls.ts",
    tests: ["test/unit/client/retries.test.ts"],
    mutations: [
      {
        name: "the client sends creations without an idempotency key",
        find: 'const headers = { "idempotency-key": idempotencyKey };',
        replace: "const headers = {};",
      },
    ],
  },
  {
    file: "client/merchant/refunds.ts",
    tests: ["test/unit/client/retries.test.ts"],
    mutations: [
      {
        name: "the client makes a key of its own for each refund of a part",
        find: "if (refund.amount && options?.idempotencyKey === undefined)",
        replace: "if (refund.amount && options === undefined)",
      },
    ],
  },
  {
    file: "client/webhooks/verify.ts",
    tests: ["test/unit/client/verify-webhook.test.ts"],
    mutations: [
      {
        name: "the client accepts webhooks of any age",
        find: "if (Math.abs(now.getTime() / 1000 - Number(timestamp)) > toleranceSeconds)",
        replace: "if (toleranceSeconds < 0)",
      },
      {
        name: "the client accepts webhooks without a valid signature",
        find: "if (!right.some((one) => given.some((other) => isSame(one, other))))",
        replace: "if (given.length === 0)",
      },
    ],
  },
];
