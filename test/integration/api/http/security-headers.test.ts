import { expect, test } from "vitest";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);

test("every response has the security headers, also for errors and unknown paths", async () => {
  const id = await makePayment(api, merchant);
  const answers = [
    await api.get(`/v1/payments/${id}/status`, merchant.headers),
    await api.get(`/v1/gateway/payment/${id}`, merchant.wallet),
    await api.get("/v1/payments"),
    await api.get("/nowhere"),
    await api.post("/v1/payments", merchant.headers, {}),
    await api.ask("PUT", "/v1/payments", {}),
  ];
  for (const { headers } of answers)
    expect(Object.fromEntries(headers)).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "strict-transport-security": "max-age=63072000",
      "x-content-type-options": "nosniff",
      "x-request-id": expect.stringMatching(/^[\w.:-]+$/),
    });
  for (const { headers } of answers)
    for (const name of ["server", "x-powered-by"]) expect(headers.has(name)).toBe(false);
});

test("no key is stored in the database or written to a log line", async () => {
  const { rows } = await api.db.executeQuery<{ text: string }>(
    (await import("kysely")).sql`select row_to_json(api_key)::text as text from api_key`.compile(api.db),
  );
  const secret = merchant.key.replace(/^svc_(test_)?/, "");
  expect(rows.length).toBeGreaterThan(0);
  for (const { text } of rows) expect(text).not.toContain(secret);
  expect(api.lines.join("\n")).not.toContain(secret);
});
