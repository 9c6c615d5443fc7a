import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { applyDueClaims } from "../../../signer/apply-due-claims.ts";
import { ownActor, workerActor } from "../../../signer/audit/entries.ts";
import { claimDestinations, noteRecorded } from "../../../signer/claim-destinations.ts";
import { createStore } from "../../../signer/create-store.ts";
import { applyPaidDestination, findDestinationRefusal, recordDestination } from "../../../signer/destinations.ts";
import type { Limits } from "../../../signer/limits.ts";
import type { Statement } from "../../../signer/protocol.ts";
import { signText, writeStatement } from "../../../signer/statements.ts";
import { inStoreTransaction } from "../../../signer/store.ts";
import { makeApprovalKey } from "../../support/approval-key.ts";

// Which account is in force in the signer after the service's changes, in every order in which they can be reported.

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const [own, other, thief] = ["d1", "d2", "d3"].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const merchantId = "mrch_1";
const HOUR = 3_600_000;
const approver = makeApprovalKey();

/** A merchant that is paid to its own account, with the service's rows, and a signer with a waiting period of 72 hours. */
function setUp({ isNew = false } = {}) {
  let now = Date.parse("2026-03-01T00:00:00Z");
  let paused = false;
  const lines: string[] = [];
  const store = createStore(":memory:", { command: "init", at: new Date(now) });
  const deps = {
    store,
    readLimits: (): Limits => ({ paused, destinationWaitingHours: 72, assets: {}, operators: [] }),
    deployment: "test",
    caller: workerActor("socket"),
    log: createLog({ level: "info", role: "signer" }, { write: (line) => void lines.push(line) }),
    metrics: createMetrics(new Registry(), "signer"),
    now: () => new Date(now),
  };
  /** The rows: the account that applies, the one that is requested, and the accounts of the changes that are not reported. */
  const rows = { applied: own, requested: "", unreported: isNew ? [] : [own] };
  const statements: Statement[] = [];

  const wait = (hours: number) => {
    now += hours * HOUR;
    applyDueClaims(deps);
  };
  const reject = () => {
    rows.unreported.push(rows.requested);
    rows.requested = "";
  };
  const request = (receiver: string) => {
    if (rows.requested) reject();
    rows.requested = receiver;
    rows.unreported.push(receiver);
  };
  const apply = () => {
    rows.applied = rows.requested;
    reject();
  };
  const change = (receiver: string) => {
    request(receiver);
    apply();
  };
  const approve = (receiver: string) => {
    const text = writeStatement(
      { action: "approve destination", merchantId, asset, receiver },
      { deployment: "test", at: deps.now() },
    );
    statements.push({ text, signer: approver.publicKey, signature: signText(approver.privateKey, text) });
  };
  const report = () => {
    const one = { merchantId, asset };
    const destinations = rows.unreported
      .splice(0)
      .flatMap((account) => [
        { ...one, receiver: rows.applied, state: "applied" as const },
        ...(rows.requested ? [{ ...one, receiver: rows.requested, state: "requested" as const }] : []),
        ...([rows.applied, rows.requested].includes(account)
          ? []
          : [{ ...one, receiver: account, state: "past" as const }]),
      ]);
    const keys = [{ merchantId, publicKey: approver.publicKey }];
    claimDestinations(deps, { destinations, statements: statements.splice(0), approvalKeys: keys, revokedKeys: [] });
  };
  /** What a payout to an account does with its claim. */
  const pay = (receiver: string, { isHeld = false } = {}) => {
    const period = { at: deps.now(), waitingHours: 72, isHeld, actor: ownActor };
    inStoreTransaction(store, () => {
      const one = { merchantId, asset, receiver };
      noteRecorded(deps, one, recordDestination(store, one, period));
      applyPaidDestination(store, { merchantId, asset, receiver }, period);
    });
  };
  const setPaused = (value: boolean) => {
    paused = value;
  };
  const refusalOf = (receiver: string) => findDestinationRefusal(store, { merchantId, asset, receiver });
  const inForce = () => [own, other, thief].filter((receiver) => refusalOf(receiver) === undefined);
  const expectPaid = (receiver: string) => expect(inForce()).toEqual([receiver]);
  const actionsOf = (receiver: string) =>
    store
      .prepare("select action from audit_entry where after like ? or before like ? order by id")
      .all(`%${receiver}%`, `%${receiver}%`)
      .map(({ action }) => action);
  if (!isNew) {
    report();
    wait(80);
  }
  const service = { request, apply, reject, change, approve, report, wait, pay, setPaused };
  return { ...service, expectPaid, actionsOf, lines };
}

type Service = ReturnType<typeof setUp>;

const orders: [string, (service: Service) => void, string][] = [
  [
    "changes back within the signer's period, after a shorter one of the account",
    ({ request, apply, report, wait, expectPaid }) => {
      request(other);
      report();
      wait(24);
      apply();
      report();
      request(own);
      report();
      wait(24);
      apply();
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "asks for a change back within the signer's period, which applies after that",
    ({ request, apply, report, wait, expectPaid }) => {
      request(other);
      report();
      wait(24);
      apply();
      report();
      wait(36);
      request(own);
      report();
      wait(12);
      expectPaid(other);
      wait(12);
      apply();
      report();
      // The change back waits since it was requested.
      wait(48);
      expectPaid(own);
    },
    own,
  ],
  [
    "changes back without a waiting period, while the signer is down",
    ({ change, report, expectPaid }) => {
      change(other);
      change(own);
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "changes back without a waiting period, in two reports",
    ({ change, report, wait, expectPaid }) => {
      change(other);
      report();
      wait(71);
      change(own);
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "changes twice without a waiting period, in one report",
    ({ change, report, wait, expectPaid }) => {
      change(thief);
      change(other);
      report();
      expectPaid(own);
      wait(72);
    },
    other,
  ],
  [
    "approves a change and a change back, in one report",
    ({ change, approve, report, wait, expectPaid }) => {
      change(other);
      approve(other);
      wait(1);
      change(own);
      approve(own);
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "approves a change and a change back, in two reports",
    ({ change, approve, report, expectPaid }) => {
      change(other);
      approve(other);
      report();
      expectPaid(other);
      change(own);
      approve(own);
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "withdraws a change before its period ends",
    ({ request, reject, report, wait }) => {
      request(other);
      report();
      wait(71);
      reject();
      report();
    },
    own,
  ],
  [
    "changes, and changes back after both periods, which are equal",
    ({ request, apply, report, wait, expectPaid }) => {
      for (const account of [other, own]) {
        request(account);
        report();
        wait(72);
        apply();
        report();
        expectPaid(account);
      }
    },
    own,
  ],
  [
    "asks for a change back while the signer is paused and the change becomes due",
    ({ request, apply, report, wait, setPaused, expectPaid }) => {
      request(other);
      report();
      wait(71);
      setPaused(true);
      wait(1);
      apply();
      request(own);
      report();
      setPaused(false);
      wait(1);
      expectPaid(other);
      wait(71);
      apply();
      report();
      expectPaid(own);
    },
    own,
  ],
  [
    "changes with a longer period of the account",
    ({ request, apply, report, wait, expectPaid }) => {
      request(other);
      report();
      wait(119);
      expectPaid(own);
      wait(1);
      apply();
      report();
      expectPaid(other);
    },
    other,
  ],
  [
    "withdraws a change after the signer's period and within a longer one of the account",
    ({ request, reject, report, wait, expectPaid }) => {
      request(other);
      report();
      wait(100);
      reject();
      report();
      expectPaid(own);
    },
    own,
  ],
];

const thefts: [string, (service: Service) => void][] = [
  [
    "is reverted before a report",
    ({ change, report }) => {
      change(thief);
      change(own);
      report();
    },
  ],
  [
    "is reverted after a report",
    ({ change, report, wait }) => {
      change(thief);
      report();
      wait(71);
      change(own);
      report();
    },
  ],
  [
    "is hidden behind a request for the merchant's own account, and reverted",
    ({ change, request, apply, report, wait }) => {
      change(thief);
      request(own);
      report();
      wait(71);
      apply();
      report();
    },
  ],
  [
    "is reverted, and then only requested",
    ({ change, request, report }) => {
      change(thief);
      change(own);
      request(thief);
      report();
    },
  ],
  [
    "is reverted, and then requested as a change that the merchant withdraws",
    ({ change, request, reject, report, wait }) => {
      change(thief);
      change(own);
      request(thief);
      report();
      wait(100);
      reject();
      report();
    },
  ],
  [
    "is reverted while a change of the merchant waits",
    ({ change, request, report, wait }) => {
      request(other);
      report();
      wait(1);
      change(thief);
      change(own);
      request(other);
      report();
    },
  ],
  [
    "is reverted, and paid to by a worker that has read it before",
    ({ change, report, pay }) => {
      change(thief);
      change(own);
      report();
      pay(thief);
    },
  ],
  [
    "is reverted, and reported again after a worker's late report of it",
    ({ change, report, wait }) => {
      change(thief);
      change(own);
      report();
      change(thief);
      report();
      wait(1);
      change(own);
      report();
    },
  ],
  [
    "is reverted and paid to before the report of both",
    ({ change, report, pay }) => {
      change(thief);
      pay(thief);
      change(own);
      report();
    },
  ],
];

test.each(orders)("a merchant that %s is paid to the account that the service has", (_order, run, wanted) => {
  const service = setUp();
  run(service);
  for (let day = 0; day < 10; day += 1) {
    service.wait(24);
    service.pay(wanted);
  }
  service.expectPaid(wanted);
});

test.each(thefts)(
  "a thief's account that a forged change has applied and that %s is heard and never applies",
  (_how, run) => {
    const service = setUp();
    run(service);
    expect(service.actionsOf(thief)).toContain("destination.claimed");
    expect(service.lines.join("")).toContain(thief);
    for (let day = 0; day < 10; day += 1) service.wait(24);
    service.expectPaid(own);
    expect(service.actionsOf(thief)).not.toContain("destination.applied");
  },
);

test("a past account is logged with its end, and waits anew when it is requested", () => {
  const { change, request, apply, report, wait, actionsOf, lines, expectPaid } = setUp();
  change(thief);
  change(own);
  report();
  expect(actionsOf(thief)).toEqual(["destination.claimed", "destination.replaced"]);
  expect(lines.join("")).toContain("destination was left before its report");
  wait(100);
  request(thief);
  apply();
  report();
  wait(71);
  expectPaid(own);
});

test("the first destination of a merchant is the one that applies, not one that was left before its report", () => {
  const { change, report, expectPaid } = setUp({ isNew: true });
  change(thief);
  change(own);
  report();
  expectPaid(own);
});

test("a claim that only payouts name applies by a payout after its period, and not within the hour after a stop", () => {
  const { pay, wait, expectPaid } = setUp();
  pay(other);
  wait(71);
  pay(other);
  wait(1);
  pay(other, { isHeld: true });
  expectPaid(own);
  pay(other);
  expectPaid(other);
});

test("a change back that has applied leaves nothing that waits", () => {
  const { request, apply, report, wait, actionsOf, expectPaid } = setUp();
  request(other);
  report();
  wait(24);
  apply();
  report();
  request(own);
  report();
  wait(24);
  apply();
  report();
  expect(actionsOf(own).slice(-2)).toEqual(["destination.replaced", "destination.served"]);
  expectPaid(own);
});
