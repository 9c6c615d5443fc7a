import type { MutationGroup } from "./mutation.ts";

const unknownMembers = ["test/unit/api/contract/unknown-members.test.ts"];
const logos = ["test/integration/api/merchant/logo-jobs.test.ts"];

/** Mutations of what one caller can make the api do or hold. */
export const ingressMutations: readonly MutationGroup[] = [
  {
    file: "api/http/rate-limits.ts",
    tests: ["test/integration/api/http/rate-limits.test.ts"],
    mutations: [
      {
        name: "a heavy request counts against its caller as one request",
        find: "  return callerRefusal ?? limits",
        replace: "  return limits",
      },
      {
        name: "an ordinary request of a payment counts twice against its caller",
        find: "const rest = { weight, counted: 1 };",
        replace: "const rest = { weight, counted: 0 };",
      },
      {
        name: "the requests of a minute count in the next one, because Redis does not separate them",
        find: "shared.consume(name, steps * step)",
        replace: 'shared.consume(name.replace(/ \\d+$/, ""), steps * step)',
      },
    ],
  },
  {
    file: "payments/lifecycle/list-limits.ts",
    tests: ["test/unit/payments/lifecycle/list-limits.test.ts"],
    mutations: [
      {
        name: "the lists of one account use the connections of all lists",
        find: "running.length < ofAll && running.filter((other) => other === accountId).length < ofAccount",
        replace: "running.length < ofAll",
      },
      {
        name: "the lists of all accounts together have no limit",
        find: "running.length < ofAll && running.filter((other) => other === accountId).length < ofAccount",
        replace: "running.filter((other) => other === accountId).length < ofAccount",
      },
      {
        name: "a list that fails keeps its connection",
        find: "    } finally {\n      end(accountId);\n    }",
        replace: "    } finally {\n      void end;\n    }",
      },
      {
        name: "a list that was refused runs later",
        find: "waiting = waiting.filter((one) => one !== own);",
        replace: "",
      },
      {
        name: "a further part of a download waits only as long as a list",
        find: "    }, waitMs);",
        replace: "    }, WAIT_MS);",
      },
    ],
  },
  {
    file: "workers/chain-shares.ts",
    tests: ["test/unit/workers/chain-shares.test.ts"],
    mutations: [
      {
        name: "the jobs of one chain take every slot of a queue",
        find: "own >= MOST || (own > 0 && free <= idle)",
        replace: "own > 0 && free <= idle",
      },
      {
        name: "chains that hang take the last slots of a queue",
        find: "own >= MOST || (own > 0 && free <= idle)",
        replace: "own >= MOST",
      },
      {
        name: "no chain has a slot when there are more chains than slots",
        find: "(own > 0 && free <= idle)",
        replace: "free <= idle",
      },
      {
        name: "the jobs of all chains share one part of the slots",
        find: "busy.filter((one) => one === chain).length",
        replace: "busy.length",
      },
      {
        name: "a job that fails keeps its slot",
        find: "running.splice(running.indexOf(of), 1);",
        replace: "",
      },
    ],
  },
  {
    file: "api/checkout/pages/packed-template.ts",
    tests: ["test/unit/api/checkout/pages/packed-template.test.ts"],
    mutations: [
      {
        name: "a compressed page refers to bytes of a value",
        find: "const FILLING = 0xff;",
        replace: "const FILLING = 0x65;",
      },
      {
        name: "a value of another length shifts what a compressed page refers to",
        find: "take(values, slot).length !== length",
        replace: "take(values, slot).length === -length",
      },
    ],
  },
  {
    file: "api/checkout/pages/packed-checkout.ts",
    tests: ["test/unit/api/checkout/pages/packed-checkout.test.ts"],
    mutations: [
      {
        name: "a page gets a template that shows other values",
        find: "made === checkoutPage(page).markup ? template : null",
        replace: "made ? template : null",
      },
      {
        name: "pages that differ in what they show share a template",
        find: "[language.tag, page, others, present,",
        replace: "[language.tag, present,",
      },
      {
        name: "strangers who vary their requests make templates without pause",
        find: " && monotonic() >= nextMakeAt",
        replace: "",
      },
      {
        name: "texts that markup escapes are written as they are",
        find: "texts.every(isPlain) ? texts",
        replace: "texts.length > 0 ? texts",
      },
    ],
  },
  {
    file: "api/checkout/routes/logo-route.ts",
    tests: ["test/integration/api/http/rate-limits.test.ts"],
    mutations: [
      {
        name: "requests for logos have no limit",
        find: "    if (refusal) return sendRefusal(reply, refusal);\n",
        replace: "",
      },
    ],
  },
  {
    file: "api/merchant/serve-statements.ts",
    tests: ["test/integration/api/merchant/payment-metadata.test.ts"],
    mutations: [
      {
        name: "HEAD of a statement reads all of its lines",
        find: 'request.method === "HEAD" ? undefined : await readPart()',
        replace: "await readPart()",
      },
      {
        name: "a download of a statement is cut when it waits for longer than a list",
        find: "await readPart(PART_WAIT_MS)",
        replace: "await readPart()",
        tests: ["test/integration/api/merchant/statement-limits.test.ts"],
      },
      {
        name: "downloads of statements have no limit",
        find: "deps.runList(accountId, async () => done(await parts.next()), waitMs)",
        replace: "Promise.resolve(waitMs).then(async () => done(await parts.next()))",
        tests: ["test/integration/api/merchant/statement-limits.test.ts"],
      },
    ],
  },
  {
    file: "payments/accounting/statement-lines.ts",
    tests: ["test/integration/payments/accounting/statement.test.ts"],
    mutations: [
      {
        name: "a page of a statement begins with the opening balance",
        find: "start ? start.balance : -opening.before",
        replace: "-opening.before",
      },
      {
        name: "a statement has the receiver of a refund in lower case",
        find: "to: to && spellAccount(to)",
        replace: "to",
      },
    ],
  },
  {
    file: "payments/accounting/read-statements.ts",
    tests: ["test/integration/payments/accounting/statement.test.ts"],
    mutations: [
      {
        name: "a statement continues with the balance of another period",
        find: "(!isPlace || period.join() !== [from, until].join())",
        replace: "!isPlace",
      },
    ],
  },
  {
    file: "api/merchant/balance-operations.ts",
    tests: ["test/integration/api/merchant/statement-limits.test.ts"],
    mutations: [
      {
        name: "pages of statements have no limit",
        find: "await deps.runList(args.accountId, () =>",
        replace: "await (async (list: () => ReturnType<typeof readStatementPage>) => list())(() =>",
      },
    ],
  },
  {
    file: "payments/lifecycle/confirm-payment.ts",
    tests: ["test/integration/api/gateway/confirm-payment.test.ts"],
    mutations: [
      {
        name: "a repeated confirm whose attempt stays refused is held",
        find: "if (payment.expires_at <= now) return toRefusal(attempt);",
        replace: "if (payment.expires_at <= now) return waiting;",
      },
      {
        name: "a confirm of the quote that was signed is refused when its money was booked by a renewal",
        find: "!isSameTransfer(option, paying)",
        replace: "option.id !== paying.id",
        tests: ["test/integration/payments/lifecycle/join-unsolicited.test.ts"],
      },
      {
        name: "a signature for another end is attached to a transfer",
        find: "if (option.valid_before === paying.valid_before) await",
        replace: "await",
        tests: ["test/integration/payments/lifecycle/join-unsolicited.test.ts"],
      },
    ],
  },
  {
    file: "payments/lifecycle/unsolicited-payments.ts",
    tests: ["test/integration/payments/lifecycle/replaced-when-final.test.ts"],
    mutations: [
      {
        name: "money that is not final ends an accepted transfer",
        find: "isFinal && (await",
        replace: "(await",
      },
    ],
  },
  {
    file: "payments/lifecycle/replace-unsent.ts",
    tests: ["test/integration/payments/lifecycle/replace-unsent.test.ts"],
    mutations: [
      {
        name: "a push that finds an accepted transfer which was never sent pays nothing",
        find: "if (!held || isSamePayer(held, option)) return undefined;",
        replace: "if (held || isSamePayer(held, option)) return undefined;",
      },
      {
        name: "a payment whose transfer gave way is booked by the quote of that transfer",
        find: "await changeQuote(db, { id: paymentId, option, at });",
        replace: "",
      },
      {
        name: "a transfer gives way and can still be sent",
        find: "if (!(await endUnsentTransfer(db, { id: held.id, error: REPLACED, at }))) return undefined;",
        replace: "",
      },
      {
        name: "a payer's second movement of another amount cannot be booked",
        find: "|| isSamePayer(held, option)",
        replace: "",
      },
    ],
  },
  {
    file: "payments/error-codes.ts",
    tests: ["test/unit/payments/lifecycle/list-limits.test.ts"],
    mutations: [
      {
        name: "a refusal of a caller who comes too often does not say when to try again",
        find: ", ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds })",
        replace: "",
      },
    ],
  },
  {
    file: "payments/merchants/logo-jobs.ts",
    tests: logos,
    mutations: [
      {
        name: "a process fetches any number of logos at the same time",
        find: "running.length >= LIMITS.ofAll || ",
        replace: "",
      },
      {
        name: "one account takes every place for logos",
        find: " || own >= LIMITS.ofAccount",
        replace: "",
      },
      {
        name: "a logo that was fetched keeps its place",
        find: "      running.splice(running.indexOf(accountId), 1);\n",
        replace: "",
      },
    ],
  },
  {
    file: "api/routes.ts",
    tests: ["test/integration/api/merchant/get-payment.test.ts"],
    mutations: [
      {
        name: "a stranger learns of which mode a merchant is",
        find: "await isMerchantInOtherMode(deps, { merchantId, caller })",
        replace: "await Promise.resolve(caller)",
      },
    ],
  },
  {
    file: "db/queries/refunds.ts",
    tests: ["test/integration/api/merchant/manage-refunds.test.ts"],
    mutations: [
      {
        name: "a payment shows a withdrawn refund as refunded",
        find: '.where("state", "<>", "withdrawn");\n  const { sum }',
        replace: ";\n  const { sum }",
      },
    ],
  },
  {
    file: "api/merchant/create-operations.ts",
    tests: ["test/integration/api/http/bad-input.test.ts"],
    mutations: [
      {
        name: "a creation with a misspelt member does not warn",
        find: "...unknownMembers.map(",
        replace: "...unknownMembers.slice(0, 0).map(",
      },
    ],
  },
  {
    file: "api/server.ts",
    tests: ["test/integration/api/http/silent-clients.test.ts"],
    mutations: [
      {
        name: "a client that never reads its response is never disconnected",
        find: "    connectionTimeout: silenceMs,\n",
        replace: "",
      },
    ],
  },
  {
    file: "api/merchant/refund-operations.ts",
    tests: unknownMembers,
    mutations: [
      {
        name: "a misspelt amount refunds the whole payment",
        find: "body: z.strictObject({ paymentId",
        replace: "body: z.object({ paymentId",
      },
    ],
  },
  {
    file: "api/contract/request-schemas.ts",
    tests: unknownMembers,
    mutations: [
      {
        name: "an unknown filter of a list is ignored",
        find: "  return z.strictObject({\n    cursor",
        replace: "  return z.object({\n    cursor",
      },
    ],
  },
  {
    file: "api/contract/operation.ts",
    tests: ["test/integration/api/merchant/list-payments.test.ts"],
    mutations: [
      {
        name: "a list of the account ignores Merchant-Id",
        find: "merchantNarrows && raw.merchantHeader ?",
        replace: "raw.merchantHeader === null ?",
      },
      {
        name: "Merchant-Id takes the place of the merchants that the query names",
        find: "{ merchantId: raw.merchantHeader, ...Object(raw.query) }",
        replace: "{ ...Object(raw.query), merchantId: raw.merchantHeader }",
      },
    ],
  },
  {
    file: "api/http/json-bodies.ts",
    tests: ["test/integration/api/http/bad-input.test.ts"],
    mutations: [
      {
        name: "text that is not UTF-8 is stored damaged",
        find: "{ fatal: true }",
        replace: "{ fatal: false }",
      },
      {
        name: "a body in another charset is read as UTF-8",
        find: "if (!/^(utf-?8|us-ascii)$/i.test(charset))",
        replace: "if (charset.length > 100)",
      },
    ],
  },
];
