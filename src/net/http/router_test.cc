#include "net/http/router.h"

#include <gtest/gtest.h>

#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::TestServer;

Route Named(std::string method, std::string pattern, std::string name) {
  return Route{std::move(method), std::move(pattern), name,
               [name](Request, Captures captures, Responder responder) {
                 responder.Send(Response::Text(200, name + ":" + captures["id"]));
               }};
}

Router Sample() {
  Router router;
  for (auto& route :
       {Named("GET", "/", "root"), Named("GET", "/jobs", "list"), Named("POST", "/jobs", "submit"),
        Named("GET", "/jobs/{id}", "show"), Named("GET", "/jobs/search", "search"),
        Named("DELETE", "/jobs/{id}", "remove"),
        Named("GET", "/jobs/{id}/files/{path...}", "files"),
        Named("GET", "/jobs/{id}/{part}", "part"), Named("GET", "/{rest...}", "page"),
        Named("HEAD", "/probe", "probe.head"), Named("GET", "/probe", "probe.get")}) {
    EXPECT_TRUE(router.Add(route).ok()) << route.pattern;
  }
  return router;
}

std::string NameOf(const Router& router, const char* method, const char* path) {
  const auto match = router.Find(method, path);
  return match.route ? match.route->name : std::to_string(match.status);
}

TEST(Router, PrefersTheRouteThatIsLiteralEarlier) {
  const Router router = Sample();
  EXPECT_EQ(NameOf(router, "GET", "/"), "root");
  EXPECT_EQ(NameOf(router, "GET", "/jobs"), "list");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/search"), "search");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/%73earch"), "search");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/a1"), "show");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/a1/logs"), "part");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/a1/files/x/y"), "files");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/a1/files"), "part");
  EXPECT_EQ(NameOf(router, "GET", "/assets/app.js"), "page");
}

TEST(Router, GivesCapturesDecodedOnce) {
  const Router router = Sample();
  EXPECT_EQ(router.Find("GET", "/jobs/a%20b").captures["id"], "a b");
  EXPECT_EQ(router.Find("GET", "/jobs/a%252e").captures["id"], "a%2e");
  EXPECT_EQ(router.Find("GET", "/jobs/a+b").captures["id"], "a+b");
  EXPECT_EQ(router.Find("GET", "/jobs/x%2fy").captures["id"], "x/y");
  EXPECT_EQ(NameOf(router, "GET", "/jobs/x%2fy"), "show");
  const auto match = router.Find("GET", "/jobs/7/files/out/a%20b.txt");
  EXPECT_EQ(match.captures["id"], "7");
  EXPECT_EQ(match.captures["path"], "out/a b.txt");
  EXPECT_EQ(match.captures["nothing"], "");
}

TEST(Router, ServesHeadByGetUnlessHeadIsListed) {
  const Router router = Sample();
  EXPECT_EQ(NameOf(router, "HEAD", "/jobs"), "list");
  EXPECT_EQ(NameOf(router, "HEAD", "/probe"), "probe.head");
  EXPECT_EQ(NameOf(router, "GET", "/probe"), "probe.get");
}

TEST(Router, Says405WithTheMethodsThatWouldDo) {
  const Router router = Sample();
  const auto match = router.Find("PATCH", "/jobs/a1");
  EXPECT_EQ(match.status, 405);
  EXPECT_EQ(match.allow, "DELETE, GET, HEAD");
  const auto reply = Router::Refusal(match);
  EXPECT_EQ(reply.headers.Get("Allow"), "DELETE, GET, HEAD");
  Router small;
  ASSERT_TRUE(small.Add(Named("GET", "/a", "a")).ok());
  EXPECT_EQ(small.Find("GET", "/b").status, 404);
  EXPECT_EQ(small.Find("get", "/a").status, 405);  // methods have case
}

TEST(Router, RefusesEveryWayToWriteATraversal) {
  const Router router = Sample();
  const char* refused[] = {
      "/jobs/..",
      "/jobs/../x",
      "/jobs/.",
      "/./jobs",
      "/jobs/%2e%2e",
      "/jobs/%2E%2e/x",
      "/jobs/.%2e",
      "/jobs/%2e",
      "/jobs//x",
      "//jobs",
      "/jobs/",
      "/jobs/%00",
      "/jobs/a%00.txt",
      "/jobs/a\\b",
      "/jobs/a%5cb",
      "/jobs/..%5c..",
      "/jobs/a;x",
      "/jobs/..;/x",
      "/jobs/;",
      "/jobs/..%2f..%2fetc",
      "/jobs/%2f",
      "/jobs/a%2f..%2fb",
      "/jobs/a%2f%2fb",
      "/jobs/%2e%2e%2f",
      "/jobs/%2e%2e%5c",
      "/jobs/%",
      "/jobs/%2",
      "/jobs/%zz",
      "/jobs/%u002e",
      "/jobs/%c0%ae%c0%ae",
      "/jobs/%e0%80%ae",
      "/jobs/a%0ab",
      "/jobs/a%0d%0ab",
      "/jobs/%7f",
      "/jobs/%ff",
      "jobs",
      "",
      "*",
      "/jobs/1/files/..",
      "/jobs/1/files/a/%2e%2e/b",
      "/jobs/1/files/",
  };
  for (const char* path : refused) EXPECT_EQ(NameOf(router, "GET", path), "400") << path;
}

// Planted bug: let a ';' pass for every part of a route of files.
TEST(Router, ARouteOfFilesTakesTheNamesThatFilesHave) {
  Router router;
  Route files = Named("GET", "/files/{id}/{path...}", "files");
  files.file_names = true;
  ASSERT_TRUE(router.Add(files).ok());
  ASSERT_TRUE(router.Add(Named("GET", "/jobs/{path...}", "jobs")).ok());
  EXPECT_EQ(router.Find("GET", "/files/1/a;b/c%5cd").captures["path"], "a;b/c\\d");
  EXPECT_EQ(router.Find("GET", "/files/1/a;b").captures["path"], "a;b");
  for (const char* path : {"/files/1;x/a", "/files;/1/a", "/files/%5c/a", "/jobs/a;b",
                           "/jobs/a%5cb", "/files/1/a;b/../c", "/files/1/a;/%2e%2e",
                           "/files/1/..;/b", "/files/1/..;x", "/files/1/%2e%2e;/b", "/none/a;b"}) {
    EXPECT_EQ(router.Find("GET", path).status, 400) << path;
  }
  EXPECT_EQ(router.Find("POST", "/files/1/a;b").status, 405);
}

// Planted bug: redirect to the path as it came, which a browser takes for another host.
TEST(Router, DoubledSlashesAreSentToWhereThereAreNone) {
  TestServer server(
      [router = std::make_shared<Router>(Sample())](Request request, Responder responder) {
        router->Dispatch(std::move(request), std::move(responder));
      });
  const auto answer = [&server](const std::string& target) {
    auto client = RawClient::Tcp(server.port());
    client.Send("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.ReadAll();
  };
  const auto moved = answer("//jobs///search?a=//b");
  EXPECT_NE(moved.find("HTTP/1.1 308"), std::string::npos) << moved;
  EXPECT_NE(moved.find("Location: /jobs/search?a=//b\r\n"), std::string::npos) << moved;
  EXPECT_EQ(answer("//evil.example/x").find("Location: //"), std::string::npos);
  for (const char* path :
       {"/files//etc/passwd", "//jobs//../x", "//jobs//a%5cb", "//jobs//%2e%2e"}) {
    EXPECT_EQ(answer(path).find("Location"), std::string::npos) << path;
  }
}

TEST(Router, TakesHarmlessLookalikesLiterally) {
  const Router router = Sample();
  const std::pair<const char*, const char*> taken[] = {
      {"/jobs/%252e%252e", "%2e%2e"}, {"/jobs/...", "..."},         {"/jobs/..a", "..a"},
      {"/jobs/a..", "a.."},           {"/jobs/.hidden", ".hidden"}, {"/jobs/%252f", "%2f"},
      {"/jobs/%2500", "%00"},         {"/jobs/a%3bb", "a;b"},       {"/jobs/caf%C3%A9", "café"},
      {"/jobs/a%2fb", "a/b"}};
  for (const auto& [path, id] : taken) {
    EXPECT_EQ(router.Find("GET", path).captures["id"], id) << path;
  }
}

TEST(Router, RefusesPatternsThatAreMalformedOrTaken) {
  Router router = Sample();
  for (const char* pattern :
       {"", "jobs", "/a//b", "/a/", "/a/{", "/a/{}", "/{r...}/b", "/a%20b", "/x{y}"}) {
    EXPECT_EQ(router.Add(Named("GET", pattern, "bad")).error().code, ErrorCode::kInvalid)
        << pattern;
  }
  EXPECT_EQ(router.Add(Named("GET", "/new", "list")).error().code, ErrorCode::kConflict);
  EXPECT_EQ(router.Add(Named("GET", "/jobs/{other}", "other")).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(router.Add(Named("PUT", "/jobs/{other}", "other")).ok());
}

TEST(Router, ListsItsRoutesInOrder) {
  const Router router = Sample();
  const auto routes = router.routes();
  ASSERT_EQ(routes.size(), 11U);
  EXPECT_EQ(routes[2]->name, "submit");
  EXPECT_EQ(routes[2]->method, "POST");
  EXPECT_EQ(routes[2]->pattern, "/jobs");
}

TEST(Router, AnswersRequestsOfAServer) {
  const Router router = Sample();
  TestServer server([&router](Request request, Responder responder) {
    router.Dispatch(std::move(request), std::move(responder));
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET /jobs/9?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "show:9");
  client.Send("PUT /jobs HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto refused = client.ReadResponse();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 405 ")) << refused;
  EXPECT_NE(refused.find("Allow: GET, HEAD, POST\r\n"), std::string::npos);
  client.Send("GET /jobs/%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.ReadResponse().starts_with("HTTP/1.1 400 "));
  client.Send("GET http://h/jobs/1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "show:1");
}

}  // namespace
}  // namespace athanor
