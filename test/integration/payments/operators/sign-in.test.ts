import { expect, test } from "vitest";
import { listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { changeRole, disableOperator, resetCredentials } from "../../../../payments/operators/operators.ts";
import { findSignedIn, type Login, signIn } from "../../../../payments/operators/sign-in.ts";
import { computeTotp, totpStep } from "../../../../payments/operators/totp.ts";
import { createOperators } from "../../../support/create-operators.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeClock, testEncryption } from "../../../support/test-deps.ts";

const minute = 60_000;

async function setUp() {
  // A connection for each of the logins that race.
  const { db } = await openTestDb(30);
  const clock = makeClock();
  // A code is valid for half a minute, which a slow machine needs for a few passwords.
  clock.stop();
  const deps = { db, now: clock.now, ...testEncryption() };
  const people = await createOperators(deps);
  const login = (changed: Partial<Login> = {}) => {
    const name = changed.name === "vera" ? "vera" : "olga";
    const { password, secret } = people[name];
    const code = computeTotp(secret, totpStep(clock.now()));
    return signIn(deps, { name, password, code, address: "203.0.113.7", ...changed });
  };
  return { db, clock, deps, people, login };
}

test("an operator signs in with name, password and code, and the log records it without any of them", async () => {
  const { db, deps, login } = await setUp();
  const { token = "" } = await login();
  expect(await findSignedIn(deps, token)).toEqual({ name: "olga", role: "operator" });
  const [entry] = await listAuditEntries(db, { day: undefined, subject: "olga", actor: "olga", limit: 1 });
  expect(entry).toMatchObject({
    action: "operator.signed_in",
    actor_address: "203.0.113.7",
    before: null,
    after: null,
  });
});

test("a code is accepted once, also when it is sent many times at once, and no earlier code after it", async () => {
  const { clock, people, login } = await setUp();
  const earlier = computeTotp(people.olga.secret, totpStep(clock.now()) - 1);
  const same = { code: computeTotp(people.olga.secret, totpStep(clock.now())) };
  const racing = await Promise.all([login(same), login(same), login(same), login(same)]);
  expect(racing.filter(({ token }) => token !== undefined).length).toBe(1);
  expect(await login(same)).toEqual({ token: undefined, waitMs: 0 });
  expect(await login({ code: earlier })).toEqual({ token: undefined, waitMs: 0 });
  clock.advance(30_000);
  expect((await login()).token).toBeDefined();
});

test("after ten refused logins an operator is refused from every address until the first is 15 minutes old", async () => {
  const { clock, deps, people, login } = await setUp();
  await login({ password: "wrong", address: "192.0.2.0" });
  clock.advance(5 * minute);
  for (let count = 1; count < 10; count += 1) await login({ password: "wrong", address: `192.0.2.${count}` });
  expect(await login()).toEqual({ token: undefined, waitMs: expect.closeTo(10 * minute, -5) });
  expect((await login({ name: "vera" })).token).toBeDefined();
  // Another process, as after a restart: the count is in Postgres.
  const code = computeTotp(people.olga.secret, totpStep(clock.now()));
  const right = { name: "olga", password: people.olga.password, code, address: "198.51.100.9" };
  expect(await signIn({ ...deps }, right)).toMatchObject({ token: undefined, waitMs: expect.any(Number) });
  clock.advance(10 * minute);
  expect((await login()).token).toBeDefined();
});

test("after ten refused logins an address is refused for every operator, and another address is not", async () => {
  const { login } = await setUp();
  for (let count = 0; count < 10; count += 1) await login({ name: `guess-${count}`, password: "wrong" });
  expect(await login()).toMatchObject({ waitMs: expect.any(Number) });
  expect((await login()).token).toBeUndefined();
  expect((await login({ address: "203.0.113.8" })).token).toBeDefined();
});

test("a name that Postgres cannot store counts as a refused login", async () => {
  const { login } = await setUp();
  for (let count = 0; count < 10; count += 1)
    expect(await login({ name: `guess-${count}\0` })).toEqual({ token: undefined, waitMs: 0 });
  expect(await login({ name: "guess\0" })).toEqual({ token: undefined, waitMs: expect.closeTo(15 * minute, -5) });
});

test("racing logins get no more than ten tries together", async () => {
  const { login } = await setUp();
  const tries = await Promise.all(Array.from({ length: 30 }, () => login({ password: "wrong" })));
  const refusedUnchecked = tries.filter((result) => result.token === undefined && result.waitMs > 0);
  expect(refusedUnchecked.length).toBe(20);
});

test("a new role, new credentials and the end of an operator end their sessions", async () => {
  const { clock, deps, login } = await setUp();
  const args = { actor: testActor, name: "olga" };
  const changes = [
    () => changeRole(deps, { ...args, role: "viewer" }),
    () => resetCredentials(deps, args),
    () => disableOperator(deps, args),
  ];
  const { token: first = "" } = await login();
  unwrap(await (changes[0]?.() ?? Promise.reject(new Error("no change"))));
  expect(await findSignedIn(deps, first)).toBeUndefined();
  clock.advance(30_000);
  const { token: second = "" } = await login();
  expect(await findSignedIn(deps, second)).toEqual({ name: "olga", role: "viewer" });
  unwrap(await (changes[1]?.() ?? Promise.reject(new Error("no change"))));
  expect(await findSignedIn(deps, second)).toBeUndefined();
  clock.advance(30_000);
  expect((await login()).token).toBeUndefined();
  unwrap(await (changes[2]?.() ?? Promise.reject(new Error("no change"))));
});
