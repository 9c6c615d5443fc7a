import { expect, test } from "vitest";
import { machines, type PaymentState } from "../../db/states.ts";
import { makeMerchant, makePayment } from "../rooms/api/start-api.ts";
import { openPage } from "./browser.ts";
import { bring, openShop } from "./shop.ts";
import { states } from "./states.ts";

const { api, pay, linkOf } = await openShop();
const targets = states.filter((state) => state !== "requires_action");
const next = (state: PaymentState): readonly PaymentState[] => machines.payment[state];

const drive = (id: string, status: string) => api.post(`/checkout/${id}/simulate`, {}, { status });
const movesOf = async (id: string): Promise<string[]> => {
  const rows = await api.db.selectFrom("event").selectAll().where("subject", "=", id).orderBy("id").execute();
  return rows.map(({ from_state, to_state }) => `${from_state} ${to_state}`);
};

test.each(states)(
  "from %s the console offers the moves that there are and no other, and the server takes no other",
  async (from) => {
    const id = await pay({ checkout: undefined });
    await bring(api, id, from);
    const { page } = await openPage(api.url);
    await page.goto(linkOf(id));
    await page.locator("#console summary").click();
    const offered = await page
      .locator("#console [data-to]:visible")
      .evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.to));
    expect(offered.toSorted()).toEqual([...next(from)].toSorted());

    for (const to of targets) {
      const other = await pay({ checkout: undefined });
      await bring(api, other, from);
      const before = await movesOf(other);
      const { status, body } = await drive(other, to);
      const steps = (await movesOf(other)).slice(before.length);
      // A buyer who pays is two moves, each of them legal, and the only two that are made in one go.
      const viaProcessing =
        !next(from).includes(to) && next(from).includes("processing") && next("processing").includes(to);
      if (next(from).includes(to))
        expect({ from, to, status, steps }).toEqual({ from, to, status: 200, steps: [`${from} ${to}`] });
      else if (viaProcessing)
        expect({ from, to, steps }).toEqual({ from, to, steps: [`${from} processing`, `processing ${to}`] });
      else
        expect({ from, to, status, code: body.code, steps }).toEqual({
          from,
          to,
          status: 400,
          code: "invalid_state",
          steps: [],
        });
    }
  },
);

test("a live payment has neither the console nor its routes, in whatever state", async () => {
  const live = await makeMerchant(api, { mode: "live" });
  const { page } = await openPage(api.url);
  for (const from of states) {
    const id = await makePayment(api, live);
    await bring(api, id, from);
    await page.goto(linkOf(id));
    expect(await page.locator("#console, .banner, [data-to]").count()).toBe(0);
    const before = await movesOf(id);
    for (const to of targets)
      expect({ from, to, ...(await drive(id, to)).body }).toMatchObject({ from, to, code: "payment_not_found" });
    const wallet = await api.post(`/checkout/${id}/test-wallet`, {}, {});
    expect(wallet).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
    expect(await movesOf(id)).toEqual(before);
  }
});

/** WCAG's contrast of two colours as a browser computes them. */
function contrast(one: string, other: string): number {
  const [a = 0, b = 0] = [one, other].map((colour) => {
    const parts = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map((part) => Number(part) / 255);
    const [red = 0, green = 0, blue = 0] = parts.map((part) =>
      part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

test("the banner of a test payment is there and can be read in both themes, in a colour of each", async () => {
  const id = await pay();
  const colours: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    const { page } = await openPage(api.url, { colorScheme });
    await page.goto(linkOf(id));
    const banner = page.getByText("Test payment. No real money moves.");
    expect(await banner.isVisible()).toBe(true);
    const { colour, back } = await banner.evaluate((one) => {
      const grounds = [
        one,
        ...(function* (at: Element | null): Generator<Element> {
          for (let up = at; up; up = up.parentElement) yield up;
        })(one.parentElement),
      ];
      const back = grounds.map((at) => getComputedStyle(at).backgroundColor).find((at) => at !== "rgba(0, 0, 0, 0)");
      return { colour: getComputedStyle(one).color, back: back ?? "rgb(255, 255, 255)" };
    });
    expect({ colorScheme, ratio: contrast(colour, back) >= 4.5 }).toEqual({ colorScheme, ratio: true });
    colours.push(colour);
  }
  expect(new Set(colours).size).toBe(2);
});
