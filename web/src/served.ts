// Requests to the program that serves the page.

/** The response to a request. Throws an error with the reason if the request fails. */
export async function post(path: "whatif" | "data", request: Record<string, unknown>): Promise<Response> {
  const reply = await fetch(path, { method: "POST", body: JSON.stringify(request), headers: { "Content-Type": "application/json" } })
    .catch(() => { throw new Error("The program that serves this page is gone: start it again."); });
  if (!reply.ok) throw new Error((await reply.text()).trim());
  return reply;
}
