# OpenMx: full-information likelihood of regressions, continuous and ordinal jointly.
#
# Means are a product of coefficients and regressors, which are definition variables. A censored outcome is
# in the table twice, as openmx.R has it: as it was seen, and as an ordinal twin. Of selected outcomes the
# index is an ordinal column with the threshold 0, and the outcome is missing where it is not selected.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(OpenMx))

estimate <- function(table, options) {
  kind <- table$task$kind
  X <- table$read("regressors")
  Y <- table$read("values")
  parts <- list(tobit = censored, heckman = selected)[[kind]](table, X, Y)
  fit <- mxRun(parts$model, silent = TRUE)
  error <- c(fit$output$standardErrors)
  if (is.null(error)) error <- rep(NA_real_, length(coef(fit)))
  names(error) <- names(coef(fit))
  coefficients <- coef(fit)[parts$labels]
  list(
    mean = coefficients, covariance = fit$S$values,
    mean_interval = wald(coefficients, error[parts$labels], table$task$level)
  )
}

labels_of <- function(q, k) outer(1:q, 1:k, function(i, j) paste0("b", i, "_", j))

named <- function(X) setNames(as.data.frame(X), paste0("x", seq_len(ncol(X))))

# A row of one and the regressors, as definition variables.
row_of <- function(k) {
  mxMatrix("Full", k, 1, FALSE, c(1, rep(0, k - 1)), c(NA, paste0("data.x", 1:(k - 1))), name = "w")
}

censored <- function(table, X, Y) {
  d <- table$d
  k <- ncol(X) + 1
  limits <- table$task$limits
  filled <- sapply(1:d, function(j) ifelse(is.na(Y[, j]), limits[j] - 0.5, Y[, j]))
  start <- lm(filled ~ X)
  seen <- paste0("seen", 1:d)
  twin <- paste0("twin", 1:d)
  level <- ifelse(is.na(Y), 0, NA)
  twins <- lapply(as.data.frame(level), mxFactor, levels = 0:1)
  columns <- c(setNames(as.data.frame(Y), seen), setNames(twins, twin), named(X))
  S <- as.matrix(cov(as.matrix(resid(start)))) * (1 + diag(d)) / 2
  names <- outer(1:d, 1:d, function(i, j) paste0("s", pmin(i, j), "_", pmax(i, j)))
  labels <- labels_of(d, k)
  model <- mxModel(
    "censored",
    mxMatrix("Full", d, k, TRUE, t(matrix(coef(start), k)), labels, name = "B"),
    row_of(k),
    mxMatrix("Symm", d, d, TRUE, S, names, ifelse(diag(d) == 1, 1e-6, NA), name = "S"),
    mxMatrix("Full", 1, d, FALSE, limits, name = "limits"),
    mxAlgebra(t(B %*% w), name = "M"),
    mxAlgebra(cbind(M, M), name = "means"),
    mxAlgebra(rbind(cbind(S, S), cbind(S, S)), name = "covariances"),
    mxExpectationNormal("covariances", "means", c(seen, twin), "limits", twin),
    mxFitFunctionML(jointConditionOn = "continuous"),
    mxData(as.data.frame(columns), type = "raw")
  )
  list(model = model, labels = c(t(labels)))
}

selected <- function(table, X, Y) {
  k <- ncol(X) + 1
  works <- mxFactor(Y[, 2], levels = 0:1)
  columns <- data.frame(wage = Y[, 1], works = works, named(X))
  wage <- lm(Y[, 1] ~ X[, -3])
  probit <- glm(Y[, 2] ~ X, family = binomial("probit"))
  start <- rbind(c(coef(wage), 0), coef(probit))
  labels <- labels_of(2, k)
  free <- labels != labels[1, k]
  model <- mxModel(
    "selected",
    mxMatrix("Full", 2, k, free, start, labels, name = "B"),
    row_of(k),
    mxMatrix(
      "Symm", 2, 2, c(TRUE, TRUE, TRUE, FALSE), c(var(resid(wage)), 0, 0, 1),
      c("s", "r", "r", NA), c(1e-6, NA, NA, NA),
      name = "S"
    ),
    mxMatrix("Full", 1, 1, FALSE, 0, name = "limits"),
    mxAlgebra(t(B %*% w), name = "M"),
    mxExpectationNormal("S", "M", c("wage", "works"), "limits", "works"),
    mxFitFunctionML(jointConditionOn = "continuous"),
    mxData(columns, type = "raw")
  )
  list(model = model, labels = t(labels)[t(free)])
}

answer_all(estimate, "OpenMx")
