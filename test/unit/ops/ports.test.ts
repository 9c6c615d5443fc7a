import { expect, test } from "vitest";
import { freePort } from "../../../ops/local/ports.ts";

test("a port that nobody has begun to listen on yet is given once, however many ask", async () => {
  const ports: number[] = [];
  for (let asked = 0; asked < 500; asked += 1) ports.push(await freePort());
  expect(new Set(ports).size).toBe(ports.length);
});
