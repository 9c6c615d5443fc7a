import type { MutationGroup } from "./mutation.ts";

const rules = ["test/unit/payments/merchants/destination-rules.test.ts"];
const changes = ["test/integration/payments/merchants/destination-changes.test.ts"];
const calls = ["test/integration/api/merchant/settlement-changes.test.ts"];
const screenings = ["test/integration/api/merchant/screened-settlements.test.ts"];
const records = ["test/unit/signer/destinations.test.ts"];
const reports = ["test/unit/signer/destination-reports.test.ts"];
const changesBack = ["test/integration/signer/changed-back-destinations.test.ts"];

/** Mutations of who is paid where, and from when: in the service, and in the signer. */
export const destinationMutations: readonly MutationGroup[] = [
  {
    file: "payments/merchants/destination-rules.ts",
    tests: rules,
    mutations: [
      {
        name: "the first destination of a merchant that was paid applies at once",
        find: "const isNew = !terms.has_been_paid && ",
        replace: "const isNew = ",
      },
      {
        name: "a destination that is deleted and added again applies at once",
        find: "&& !terms.known_assets.includes(asset)",
        replace: "",
      },
      {
        name: "a request for the account that applies does not withdraw the change that waits",
        find: 'return wanted === applied ? "withdraw" : "request";',
        replace: 'return "request";',
      },
    ],
  },
  {
    file: "payments/merchants/destination-changes.ts",
    tests: changes,
    mutations: [
      {
        name: "a change leaves no audit entry",
        find: "  audit.push(...rows.map((row) => toAuditEntry(row, { actor, action, at: now() })));\n",
        replace: "",
      },
    ],
  },
  {
    file: "payments/merchants/check-destinations.ts",
    tests: screenings,
    mutations: [
      {
        name: "the destinations of test merchants are screened",
        find: '  if (mode === "test") return undefined;\n',
        replace: "",
      },
      {
        name: "destinations are screened by one call for each",
        find: "Map.groupBy(accounts, ({ chain }) => chain)",
        replace: "accounts.map((one) => [one.chain, [one]] as const)",
      },
      {
        name: "a changed destination is not screened",
        find: "  if ((await findUnserved(deps, args, [args.destination])) === undefined) return done(undefined);",
        replace: "  return done(undefined);",
      },
    ],
  },
  {
    file: "payments/merchants/destinations.ts",
    tests: screenings,
    mutations: [
      {
        name: "destinations are screened inside the transaction that adds them",
        find: "    const refusal = await findAdditionRefusal({ ...deps, db: locked.db }, args);",
        replace:
          '    const { checkAdditions } = await import("./check-destinations.ts");\n    const refusal = await findAdditionRefusal({ ...deps, db: locked.db }, args);\n    await checkAdditions({ ...(deps as PaymentDeps), db: locked.db as unknown as PaymentDeps["db"] }, args);',
      },
    ],
  },
  {
    file: "db/migrations/initial/destination-changes.sql",
    tests: changes,
    mutations: [
      {
        name: "a change applies although the destination was never updated",
        find: "do update set destination = excluded.destination, updated_at",
        replace: "do update set updated_at",
      },
      {
        name: "the signer does not hear of a rejected change",
        find: "new.reported_at := null;",
        replace: "",
        tests: ["test/integration/db/forged-destinations.test.ts"],
      },
      {
        name: "the signer does not hear that a change has applied, and the claim of the account that was left applies in time",
        find: "when (new.state in ('applied', 'rejected') and",
        replace: "when (new.state = 'rejected' and",
        tests: changesBack,
      },
      {
        name: "a change of one merchant redirects the payouts of another",
        find: "where d.merchant_id = excluded.merchant_id and d.asset = excluded.asset",
        replace: "",
      },
    ],
  },
  {
    file: "signer/destinations.ts",
    tests: records,
    mutations: [
      {
        name: "a claim that the service has withdrawn still applies in time",
        find: 'insertEvent(store, { id, kind: "replaced", at, statement: null, actor });',
        replace: "continue;",
      },
      {
        name: "a claim hides another one of the same report",
        find: "inForce === 0 && !isWanted({ merchantId, asset, receiver })",
        replace:
          'inForce === 0 && !isDeepStrictEqual(reported.at(-1), { merchantId, asset, receiver, state: "requested" })',
      },
      {
        name: "the claim of an account that was left applies in time",
        find: '(state === "requested" || (state === "applied" && !isInForce(store, one)))',
        replace: "(state !== undefined && !isInForce(store, one))",
        tests: reports,
      },
      {
        name: "a change back that has applied leaves a claim that waits",
        find: '(state === "applied" && !isInForce(store, one))',
        replace: 'state === "applied"',
        tests: reports,
      },
      {
        name: "a change back waits only since it applies in the service",
        find: '(isInForce(store, one) && state !== "requested")',
        replace: "isInForce(store, one)",
        tests: reports,
      },
      {
        name: "the signer records no account that was left before the report",
        find: "  insertDestination(store, one, { at, appliesAt: NEVER, actor });\n  return true;",
        replace: "  return [at, actor].length > 0;",
        tests: reports,
      },
      {
        name: "an account that is only requested displaces the one that the service pays to",
        find: "appliesAt <= at.getTime() && findServed(store, of) === receiver",
        replace: "appliesAt <= at.getTime() && (receiver !== undefined || findServed(store, of))",
        tests: reports,
      },
      {
        name: "the signer forgets a change of the account that the service pays to",
        find: 'insertAudited(store, { table: "served_destination", row, action: "destination.served", actor, at });',
        replace: "void [row, actor];",
        tests: reports,
      },
      {
        name: "a payout lets a claim apply within its period",
        find: "if (!waiting || isHeld || (waiting.appliesAt ?? 0) > at.getTime()) return;",
        replace: "if (!waiting || isHeld) return;",
        tests: reports,
      },
      {
        name: "a payout lets a claim apply within the hour after a stop",
        find: "if (!waiting || isHeld ||",
        replace: "if (!waiting ||",
        tests: reports,
      },
      {
        name: "a claim that waits is recorded again beside a later one, and waits anew",
        find: "findWaiting(store, one) || (",
        replace: "listDestinations(store, one)[0]?.receiver === one.receiver || (",
      },
      {
        name: "a receiver that is reported while a lost store is rebuilt applies at once",
        find: "!mayHaveLostDestinations(store, merchantId) &&",
        replace: "",
      },
    ],
  },
  {
    file: "signer/claim-destinations.ts",
    tests: ["test/unit/signer/stops.test.ts"],
    mutations: [
      {
        name: "an account that was left before the report is a merchant's first destination",
        find: 'if (one.state !== "past") noteRecorded(',
        replace: "noteRecorded(",
        tests: reports,
      },
      {
        name: "the first destination of a merchant applies at once after a stop",
        find: "limits.paused || findHoldEnd(store, at) > 0",
        replace: "limits.paused",
      },
    ],
  },
  {
    file: "payments/merchants/decide-changes.ts",
    tests: changes,
    mutations: [
      {
        name: "a change that cannot be applied keeps the others waiting",
        find: "await runEach(due, apply, { isTransient });",
        replace: "for (const change of due) await apply(change);",
      },
    ],
  },
  {
    file: "payments/merchants/decide-changes.ts",
    tests: ["test/integration/workers/handlers.test.ts"],
    mutations: [
      {
        name: "the sweep waits for a locked merchant until the statement times out",
        find: "await limitLockWaits(db, LOCK_WAIT_MS);",
        replace: "",
      },
      {
        name: "the sweep waits for a locked merchant once for each of its changes",
        find: "if (isOneRows(err)) locked.add(change.merchant_id);",
        replace: "",
      },
    ],
  },
  {
    file: "runtime/run-each.ts",
    tests: ["test/unit/runtime/run-each.test.ts", "test/integration/workers/handlers.test.ts"],
    mutations: [
      {
        name: "a lock on one row ends the sweep",
        find: "if (isTransient(error) && !isOneRows(error)) break;",
        replace: "if (isTransient(error)) break;",
      },
    ],
  },
  {
    file: "payments/merchants/verify-decision.ts",
    tests: calls,
    mutations: [
      {
        name: "an API key alone approves: the signature is not verified",
        find: 'if (!isSignedBy(statement.signer, statement)) return refuse("params_validation", "statement.signature: is not valid");',
        replace: "",
      },
      {
        name: "any key pair approves",
        find: 'if (!key) return refuse("forbidden", "statement.signer: is not an approval key of the merchant");',
        replace: "if (!key) return done(statement);",
      },
      {
        name: "an approval key counts as soon as it is registered",
        find: "if (key.applies_at > now())",
        replace: "if (false)",
      },
      {
        name: "a revoked approval key approves",
        find: 'if (key.revoked_at) return refuse("forbidden", "statement.signer: the approval key is revoked");',
        replace: "",
      },
      {
        name: "a signature of another account approves a change",
        find: "if (canonicalAddress(change.asset, subject.receiver) !== canonicalAddress(change.asset, receiver))",
        replace: "if (false)",
      },
      {
        name: "a copy of an approval approves a later change",
        find: "if (used !== undefined && used !== change.id)",
        replace: "if (false)",
      },
    ],
  },
  {
    file: "payments/merchants/approval-keys.ts",
    tests: calls,
    mutations: [
      {
        name: "a revoked approval key is registered again",
        find: 'if (known?.revoked_at) return refuse("invalid_state", "the key was revoked: make another pair of keys");',
        replace: "",
      },
    ],
  },
  {
    file: "api/merchant/destination-change-operations.ts",
    tests: calls,
    mutations: [
      {
        name: "a key that may only request changes approves its own",
        find: 'scope: "settlements:approve",',
        replace: 'scope: "settlements",',
      },
    ],
  },
  {
    file: "signer/decide-statement.ts",
    tests: records,
    mutations: [
      {
        name: "the signer follows a statement without a valid signature",
        find: 'if (!isSignedBy(publicKey, statement)) return "the signature is not valid";',
        replace: "",
      },
      {
        name: "a new approval key counts at once",
        find: 'if (state === "waiting") return "the key is within its waiting period";',
        replace: "",
      },
      {
        name: "a statement decides again after the merchant has left the account",
        find: 'if (decisions.some((decision) => decision.text === text)) return yes("the statement was used before");',
        replace: "",
      },
      {
        name: "an approval that was held back undoes a later rejection",
        find: "if (weighing.some((decision) => (readStatement(decision.text)?.at ?? signedAt) > signedAt))",
        replace: "if (false)",
      },
      {
        name: "an approval of the receiver that applies can be used again after the merchant has left it",
        find: "insertEvent(store, { id: applied.id, kind, at, statement: text, actor });",
        replace: "",
      },
      {
        name: "a revoked key still approves",
        find: 'if (state === "revoked") return "the key is revoked";',
        replace: "",
      },
      {
        name: "a key that was revoked within its waiting period decides",
        find: 'if (state === "never_applied") return "the key was revoked within its waiting period";',
        replace: "",
      },
      {
        name: "a thief silences a merchant's rejection by revoking its key",
        find: 'if (subject.action !== "approve destination") return undefined;',
        replace: "",
      },
      {
        name: "a merchant's key approves during a pause",
        find: 'return limits.paused ? "the signer is paused: only operators approve" : undefined;',
        replace: "return undefined;",
      },
    ],
  },
  {
    file: "signer/statements.ts",
    tests: records,
    mutations: [
      {
        name: "an old statement that was never used can be used at any time",
        find: "ageMs > VALID_MS || ",
        replace: "",
      },
    ],
  },
  {
    file: "signer/claim-destinations.ts",
    tests: records,
    mutations: [
      {
        name: "a report of a worker lets a claim apply during a pause",
        find: "if (!limits.paused) applyDue(deps, at);",
        replace: "applyDue(deps, at);",
      },
    ],
  },
  {
    file: "payments/merchants/report-destinations.ts",
    tests: changesBack,
    mutations: [
      {
        name: "a report that reached the signer after a newer one is not corrected",
        find: "await markUnreported(deps.db, changes);",
        replace: "",
      },
    ],
  },
  {
    file: "signer/client.ts",
    tests: ["test/integration/signer/unreadable-reports.test.ts"],
    mutations: [
      {
        name: "a report in parts ends the claims of a merchant's other accounts",
        find: ".map((accounts) => ({ ...nothing, destinations: accounts }))",
        replace: ".flatMap((accounts) => accounts.map((one) => ({ ...nothing, destinations: [one] })))",
      },
    ],
  },
  {
    file: "signer/authorize-payouts.ts",
    tests: changesBack,
    mutations: [
      {
        name: "a claim that only payouts name never applies",
        find: "    applyPaidDestination(store, destination, waiting);\n",
        replace: "",
      },
    ],
  },
  {
    file: "payments/merchants/sign-decisions.ts",
    tests: ["test/integration/signer/destination-statements.test.ts"],
    mutations: [
      {
        name: "an operator signs a change of which the row was rewritten",
        find: "  if (differing)\n",
        replace: "  if (false as boolean && differing)\n",
      },
    ],
  },
  {
    file: "payments/payouts/approve-return.ts",
    tests: ["test/integration/signer/returns.test.ts"],
    mutations: [
      {
        name: "an operator signs another return than the one that they verified",
        find: "    if (differing)\n",
        replace: "    if (false as boolean && differing)\n",
      },
    ],
  },
  {
    file: "signer/apply-due-claims.ts",
    tests: records,
    mutations: [
      {
        name: "a claim applies during a pause",
        find: "if (deps.readLimits()?.paused !== false) return;",
        replace: "",
      },
    ],
  },
  {
    file: "signer/approvals.ts",
    tests: ["test/unit/signer/approvals.test.ts"],
    mutations: [
      {
        name: "an operator with two names counts twice",
        find: ".set(operator.publicKey, operator.name);",
        replace: ".set(operator.name, operator.name);",
      },
      {
        name: "an approval of another amount counts",
        find: "    if (writeStatement(subject, { deployment, at: read.at }) !== statement.text) continue;\n",
        replace: "",
      },
      {
        name: "one operator approves a return",
        find: "if (approvers.length >= REQUIRED_APPROVALS)",
        replace: "if (approvers.length >= 1)",
        tests: ["test/integration/signer/returns.test.ts"],
      },
      {
        name: "an approval that was kept for weeks counts",
        find: "isRecorded || findAgeRefusal(read.at, at) === undefined",
        replace: "isRecorded || findAgeRefusal(read.at, read.at) === undefined",
      },
      {
        name: "a return that was recorded is not signed again after a day",
        find: "isRecorded || findAgeRefusal(read.at, at) === undefined",
        replace: "findAgeRefusal(read.at, at) === undefined",
        tests: ["test/integration/signer/returns.test.ts"],
      },
    ],
  },
];
